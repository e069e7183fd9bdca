package textsearch

import (
	_ "embed" // the table of configurations
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Config names a configuration and the dictionaries of its words: Words, and
// ASCII for those in ASCII. All else goes to the dictionary simple.
type Config struct {
	OID          uint32
	Name         string
	Words, ASCII string
}

// Dictionary names a dictionary.
type Dictionary struct {
	OID  uint32
	Name string
}

// DictSimple is the dictionary that changes words to lower case.
const DictSimple = "simple"

// simpleDictOID is the OID of the dictionary simple.
const simpleDictOID = 3765

//go:embed configs.tsv
var configsTSV string

// Configs are all configurations. They are not to be written.
var Configs = sync.OnceValue(func() []Config {
	var out []Config
	for line := range strings.Lines(configsTSV) {
		if line[0] == '#' {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		oid, err := strconv.ParseUint(f[0], 10, 32)
		if err != nil {
			panic(fmt.Sprintf("textsearch: configs.tsv: %v", err))
		}
		out = append(out, Config{uint32(oid), f[1], f[2], f[3]})
	}
	return out
})

// Dictionaries are all dictionaries: that of a language comes right before its
// configuration.
var Dictionaries = sync.OnceValue(func() []Dictionary {
	out := []Dictionary{{simpleDictOID, DictSimple}}
	for _, c := range Configs() {
		if c.Words != DictSimple {
			out = append(out, Dictionary{c.OID - 1, c.Words})
		}
	}
	return out
})

// ConfigByOID finds a configuration, nil if there is none.
func ConfigByOID(oid uint32) *Config {
	for i := range Configs() {
		if c := &Configs()[i]; c.OID == oid {
			return c
		}
	}
	return nil
}

// ConfigByName finds a configuration, nil if there is none.
func ConfigByName(name string) *Config {
	for i := range Configs() {
		if c := &Configs()[i]; c.Name == name {
			return c
		}
	}
	return nil
}

// DictByOID finds a dictionary, nil if there is none.
func DictByOID(oid uint32) *Dictionary {
	for i := range Dictionaries() {
		if d := &Dictionaries()[i]; d.OID == oid {
			return d
		}
	}
	return nil
}

// DictByName finds a dictionary, nil if there is none.
func DictByName(name string) *Dictionary {
	for i := range Dictionaries() {
		if d := &Dictionaries()[i]; d.Name == name {
			return d
		}
	}
	return nil
}
