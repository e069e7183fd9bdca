package storage

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
)

const (
	keyFileName = "secret.key"
	keyBytes    = 32
)

// keyring encrypts secrets with AES-256-GCM under a key file, so that copies of
// the metadata alone (logs, disks, core files of it) do not give them away.
type keyring struct{ aead cipher.AEAD }

// openKeyring reads the key, or makes one unless something needs the old one.
func openKeyring(fs FS, dir string, needed func() (bool, error)) (*keyring, error) {
	path := fs.PathJoin(dir, keyFileName)
	key, err := readAll(fs, path)
	if isNotExist(err) {
		if used, err := needed(); err != nil {
			return nil, err
		} else if used {
			return nil, fmt.Errorf("key file %s is missing, and secrets need it", path)
		}
		key = make([]byte, keyBytes)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
		err = writeFileAtomic(fs, dir, keyFileName, key)
	}
	if err != nil {
		return nil, err
	}
	if len(key) != keyBytes {
		return nil, &CorruptionError{File: path, Reason: fmt.Sprintf("key of %d bytes instead of %d", len(key), keyBytes)}
	}
	c, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(c)
	return &keyring{aead}, err
}

// seal encrypts plain, bound to the name it is stored under.
func (k *keyring) seal(name, plain []byte) ([]byte, error) {
	nonce := make([]byte, k.aead.NonceSize(), k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return k.aead.Seal(nonce, nonce, plain, name), nil
}

func (k *keyring) open(name, sealed []byte) ([]byte, error) {
	n := k.aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("too short")
	}
	return k.aead.Open(nil, sealed[:n], sealed[n:], name)
}
