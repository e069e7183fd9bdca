package expr

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The raw functions of PostgreSQL's extension pgcrypto (appendix F.26 of its manual).

// newHash is the hash function of a name.
func newHash(name []byte) (func() hash.Hash, *pgerror.Error) {
	switch strings.ToLower(string(name)) {
	case "md5":
		return md5.New, nil
	case "sha1":
		return sha1.New, nil
	case "sha224":
		return sha256.New224, nil
	case "sha256":
		return sha256.New, nil
	case "sha384":
		return sha512.New384, nil
	case "sha512":
		return sha512.New, nil
	}
	return nil, errParam("Cannot use \"%s\": No such hash algorithm", name)
}

func digestFn(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	h, err := newHash(a.Bytes(1, i))
	if err != nil {
		return err
	}
	sum := h()
	sum.Write(a.Bytes(0, i))
	out.Bytes(sum.Sum(nil))
	return nil
}

func hmacFn(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	h, err := newHash(a.Bytes(2, i))
	if err != nil {
		return err
	}
	sum := hmac.New(h, a.Bytes(1, i))
	sum.Write(a.Bytes(0, i))
	out.Bytes(sum.Sum(nil))
	return nil
}

// aesMode is a cipher of the form aes[-cbc|-ecb][/pad:pkcs|/pad:none]. Its key is
// filled with zeros, or cut, to a length that AES has.
type aesMode struct {
	block    cipher.Block
	iv       []byte
	ecb, pad bool
}

func newAES(name, key, iv []byte) (*aesMode, *pgerror.Error) {
	alg, rest, _ := strings.Cut(strings.ToLower(string(name)), "/")
	alg, mode, _ := strings.Cut(alg, "-")
	m := &aesMode{pad: true, ecb: mode == "ecb"}
	switch {
	case alg != "aes" && alg != "rijndael" || mode != "" && mode != "cbc" && mode != "ecb":
		return nil, errParam("Cannot use \"%s\": No such cipher algorithm", name)
	case rest == "pad:none":
		m.pad = false
	case rest != "" && rest != "pad:pkcs":
		return nil, errParam("Cannot use \"%s\": No such cipher algorithm", name)
	}
	size := 32
	for _, n := range []int{24, 16} {
		if len(key) <= n {
			size = n
		}
	}
	full := make([]byte, size)
	copy(full, key)
	m.block, _ = aes.NewCipher(full) // the size is one of AES's
	m.iv = make([]byte, aes.BlockSize)
	copy(m.iv, iv)
	return m, nil
}

func (m *aesMode) encrypt(data []byte) ([]byte, bool) {
	data = bytes.Clone(data)
	if m.pad {
		n := aes.BlockSize - len(data)%aes.BlockSize
		data = append(data, bytes.Repeat([]byte{byte(n)}, n)...)
	}
	if len(data)%aes.BlockSize != 0 {
		return nil, false
	}
	if !m.ecb {
		cipher.NewCBCEncrypter(m.block, m.iv).CryptBlocks(data, data)
		return data, true
	}
	for b := data; len(b) > 0; b = b[aes.BlockSize:] {
		m.block.Encrypt(b, b)
	}
	return data, true
}

func (m *aesMode) decrypt(data []byte) ([]byte, bool) {
	if len(data)%aes.BlockSize != 0 || m.pad && len(data) == 0 {
		return nil, false
	}
	data = bytes.Clone(data)
	if m.ecb {
		for b := data; len(b) > 0; b = b[aes.BlockSize:] {
			m.block.Decrypt(b, b)
		}
	} else {
		cipher.NewCBCDecrypter(m.block, m.iv).CryptBlocks(data, data)
	}
	if !m.pad {
		return data, true
	}
	n := int(data[len(data)-1])
	if n == 0 || n > aes.BlockSize || !bytes.Equal(data[len(data)-n:], bytes.Repeat([]byte{byte(n)}, n)) {
		return nil, false
	}
	return data[:len(data)-n], true
}

// cryptFn is encrypt, decrypt or one of them with an initialization vector.
func cryptFn(run func(m *aesMode, data []byte) ([]byte, bool), failure string) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		var iv []byte
		if len(a) == 4 {
			iv = a.Bytes(2, i)
		}
		m, err := newAES(a.Bytes(len(a)-1, i), a.Bytes(1, i), iv)
		if err != nil {
			return err
		}
		made, ok := run(m, a.Bytes(0, i))
		if !ok {
			return pgerror.New(pgerror.ExternalRoutineInvocationException, "%s", failure)
		}
		out.Bytes(made)
		return nil
	}
}

func init() {
	text, bytea := types.Text, types.Bytea
	for _, t := range []types.Type{text, bytea} {
		rowFn("digest", bytea, digestFn, t, text)
		rowFn("hmac", bytea, hmacFn, t, t, text)
	}
	sum := bytesAppend(func(dst, b []byte) []byte { s := sha1.Sum(b); return append(dst, s[:]...) })
	totalFn("sha1", bytea, sum, bytea)
	encrypt := cryptFn((*aesMode).encrypt, "encrypt error: Encryption failed")
	decrypt := cryptFn((*aesMode).decrypt, "decrypt error: Decryption failed")
	rowFn("encrypt", bytea, encrypt, bytea, bytea, text)
	rowFn("decrypt", bytea, decrypt, bytea, bytea, text)
	rowFn("encrypt_iv", bytea, encrypt, bytea, bytea, bytea, text)
	rowFn("decrypt_iv", bytea, decrypt, bytea, bytea, bytea, text)
}
