package sqllogictest

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// script is a file to start from.
type script struct{ path, shown string }

// findScripts finds the files that the paths name, in order.
func findScripts(o *Options) ([]script, error) {
	include, err := globsOf(o.Include)
	if err != nil {
		return nil, err
	}
	exclude, err := globsOf(o.Exclude)
	if err != nil {
		return nil, err
	}
	var out []script
	add := func(path, shown string) {
		shown = strings.TrimSuffix(filepath.Clean(shown), ".gz")
		if rest, ok := strings.CutPrefix(shown, o.Strip); ok && o.Strip != "" {
			shown = strings.TrimLeft(rest, "/")
		}
		if len(include) > 0 && !matchesAny(include, shown) || matchesAny(exclude, shown) {
			return
		}
		out = append(out, script{path, shown})
	}
	for _, p := range o.Paths {
		if err := findPath(p, o.Parts, add); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("sqllogictest: no scripts in %s", strings.Join(o.Paths, " "))
	}
	return out, nil
}

func findPath(p string, parts bool, add func(path, shown string)) error {
	if list, ok := strings.CutPrefix(p, "@"); ok {
		return readList(list, add)
	}
	if st, err := os.Stat(p); err == nil && st.IsDir() {
		return filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && isScript(path, parts) {
				add(path, path)
			}
			return err
		})
	}
	if !strings.ContainsAny(p, "*?[") {
		if _, err := os.Stat(p); err != nil {
			return err
		}
		add(p, p)
		return nil
	}
	hits, err := glob(p)
	if err != nil {
		return err
	}
	slices.Sort(hits)
	for _, h := range hits {
		if st, err := os.Stat(h); err == nil && !st.IsDir() {
			add(h, h)
		}
	}
	return nil
}

// readList reads a file that names scripts relative to itself, one a line.
func readList(list string, add func(path, shown string)) error {
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		path := filepath.Join(filepath.Dir(list), line)
		if _, err := os.Stat(path); err != nil {
			path += ".gz"
		}
		add(path, line)
	}
	return nil
}

func isScript(path string, parts bool) bool {
	name := strings.TrimSuffix(path, ".gz")
	return strings.HasSuffix(name, ".test") || strings.HasSuffix(name, ".slt") || parts && strings.HasSuffix(name, ".slt.part")
}

func globsOf(patterns []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, p := range patterns {
		rx, err := globRegexp(p)
		if err != nil {
			return nil, fmt.Errorf("sqllogictest: pattern %q: %w", p, err)
		}
		out = append(out, rx)
	}
	return out, nil
}

// matchesAny matches the whole shown path, any of its tails, and the bare name.
func matchesAny(globs []*regexp.Regexp, shown string) bool {
	for tail := shown; ; {
		for _, g := range globs {
			if g.MatchString(tail) {
				return true
			}
		}
		i := strings.IndexByte(tail, '/')
		if i < 0 {
			return false
		}
		tail = tail[i+1:]
	}
}

var runID = sync.OnceValue(func() string {
	return strconv.Itoa(os.Getpid()) + "_" + strconv.FormatInt(time.Now().UnixMilli()%1e6, 10)
})

// withDatabase is a connection string with another database.
func withDatabase(dsn, db string) (string, error) {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		u, err := url.Parse(dsn)
		if err != nil {
			return "", err
		}
		q := u.Query()
		q.Del("dbname")
		q.Del("database")
		u.RawQuery, u.Path = q.Encode(), "/"+db
		return u.String(), nil
	}
	return dsn + " dbname=" + db, nil // the last one counts
}
