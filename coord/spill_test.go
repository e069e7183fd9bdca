package coord_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/coord"
)

// TestTempFileLimit sorts more than memory is for, within and beyond the limit of
// temporary files, and looks that none is left.
func TestTempFileLimit(t *testing.T) {
	dir := t.TempDir()
	tmp := filepath.Join(dir, "tmp")
	openWith(t, dir, coord.Options{}).close()
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tmp, "query-1"), []byte("left by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openWith(t, dir, coord.Options{MemoryLimit: 256 << 20})
	defer d.close()
	files := func() []os.DirEntry {
		all, _ := os.ReadDir(tmp)
		return all
	}
	if f := files(); len(f) > 0 {
		t.Errorf("%v is left of before", f)
	}
	c := d.connect()
	defer c.Close(context.Background())
	const sorted = "SELECT g, repeat('x', 100) || g AS s FROM generate_series(1, 200000) g ORDER BY s DESC"
	for _, x := range []struct{ set, shown, want string }{
		{"'1MB'", "1MB", "ERROR 53400 temporary file size exceeds temp_file_limit (1024kB)"},
		{"100", "100kB", ""},
		{"'1GB'", "1GB", "SELECT 200000"},
		{"-1", "-1", ""},
	} {
		d.exec(c, "SET temp_file_limit = "+x.set)
		if got := answer(c, "SHOW temp_file_limit"); !strings.HasSuffix(got, "\n"+x.shown) {
			t.Errorf("temp_file_limit = %s is shown as %s", x.set, got)
		}
		if x.want == "" {
			continue
		}
		got, _, _ := strings.Cut(answer(c, sorted), "\n")
		if got != x.want {
			t.Errorf("temp_file_limit = %s: %s, not %s", x.set, got, x.want)
		}
		if f := files(); len(f) > 0 {
			t.Errorf("%v is left", f)
		}
	}
	for _, v := range []string{"'x'", "-2", "'-1MB'"} {
		if got := answer(c, "SET temp_file_limit = "+v); !strings.HasPrefix(got, "ERROR 22023") {
			t.Errorf("temp_file_limit = %s: %s", v, got)
		}
	}
}
