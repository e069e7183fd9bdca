package storage

import "testing"

// A volatile store works like another, but nothing of it survives a crash of the
// machine.
func TestVolatile(t *testing.T) {
	for _, volatile := range []bool{false, true} {
		fs := NewMemFS()
		s, err := Open("db", Options{FS: fs, Volatile: volatile})
		if err != nil {
			t.Fatal(err)
		}
		b := new(Batch)
		b.PutCatalog("k", []byte("v"))
		if err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		crashed := fs.CrashClone(CrashConfig{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = crashed.Stat("db/meta")
		if lost := err != nil; lost != volatile {
			t.Errorf("volatile %v: after a crash: %v", volatile, err)
		}
	}
}
