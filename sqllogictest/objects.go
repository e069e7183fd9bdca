package sqllogictest

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"
)

// object is something a script has created, to be dropped after it.
type object struct{ kind, name string }

var (
	createdObject = regexp.MustCompile(`(?i)^\s*create\s+(?:or\s+replace\s+)?(?:(?:global|local|temp|temporary|unlogged|unique|recursive|external)\s+)*` +
		`(table|materialized\s+view|view|index|source|sink|function|aggregate|procedure|type|domain|schema|sequence|` +
		`secret|connection|subscription|trigger|role|user|database)\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?` +
		`((?:"[^"]+"|[\w$]+)(?:\s*\.\s*(?:"[^"]+"|[\w$]+))*)`)
	renamedObject = regexp.MustCompile(`(?i)^\s*alter\s+(table|materialized\s+view|view|index|source|sink|schema|type|sequence|connection|subscription)\s+` +
		`(?:if\s+exists\s+)?((?:"[^"]+"|[\w$.])+)\s+rename\s+to\s+((?:"[^"]+"|[\w$])+)`)
	leadingComments = regexp.MustCompile(`(?s)^(?:\s*--[^\n]*\n|\s*/\*.*?\*/)+`)
)

// startsWith reports whether a statement's first word may be the given one
// (in lower case); comments before it count as a maybe.
func startsWith(sql, word string) bool {
	s := strings.TrimLeft(sql, " \t\r\n")
	return len(s) >= len(word) && strings.EqualFold(s[:len(word)], word) || strings.HasPrefix(s, "--") || strings.HasPrefix(s, "/*")
}

// track notes what a statement that succeeded has created.
func (f *fileRunner) track(r *record) {
	if f.opt.KeepState {
		return
	}
	parts := []string{r.sql}
	if strings.Count(r.sql, ";") > 1 {
		parts = strings.Split(r.sql, ";")
	}
	for _, p := range parts {
		if !startsWith(p, "create") && !startsWith(p, "alter") {
			continue
		}
		p = leadingComments.ReplaceAllString(p, "")
		if m := createdObject.FindStringSubmatch(p); m != nil {
			f.created = append(f.created, object{strings.ToUpper(strings.Join(strings.Fields(m[1]), " ")), m[2]})
		} else if m := renamedObject.FindStringSubmatch(p); m != nil {
			name := m[3]
			if i := strings.LastIndexByte(m[2], '.'); i > 0 {
				name = m[2][:i] + "." + name
			}
			f.created = append(f.created, object{strings.ToUpper(strings.Join(strings.Fields(m[1]), " ")), name})
		}
	}
}

// reset drops what the script has created, the last first, in two rounds, as
// objects may depend on each other.
func (f *fileRunner) reset() {
	var todo []object
	for _, o := range slices.Backward(f.created) {
		if !slices.Contains(todo, o) && o.kind != "TRIGGER" {
			todo = append(todo, o)
		}
	}
	if len(todo) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	defer func() {
		for _, o := range todo {
			f.report.Left = append(f.report.Left, o.kind+" "+o.name)
		}
	}()
	for range 2 {
		c, err := dial(ctx, f.dsn)
		if err != nil {
			return
		}
		if f.schema != "" {
			_ = c.exec(`SET search_path TO "`+f.schema+`"`, f.opt.Timeout)
		}
		var left []object
		for _, o := range todo {
			if !f.drop(c, o) {
				left = append(left, o)
			}
		}
		c.close()
		if todo = left; len(todo) == 0 {
			return
		}
	}
}

// drop drops an object; true too if it was not there.
func (f *fileRunner) drop(c *client, o object) bool {
	kinds := []string{o.kind}
	if f.opt.Oracle && o.kind == "MATERIALIZED VIEW" {
		kinds = append(kinds, "VIEW")
	}
	for _, k := range kinds {
		for _, form := range []string{"DROP " + k + " IF EXISTS " + o.name + " CASCADE", "DROP " + k + " IF EXISTS " + o.name, "DROP " + k + " " + o.name} {
			err := c.exec(form, f.opt.Timeout)
			var e *serverError
			if err == nil || errors.As(err, &e) &&
				(slices.Contains([]string{"42P01", "42704", "42883", "3F000", "42P07"}, e.code) || strings.Contains(e.message, "not exist")) {
				return true
			}
		}
	}
	return false
}

// What lets a plain PostgreSQL stand in for a streaming database.
var (
	oracleRewrites = []Rewrite{
		{regexp.MustCompile(`(?i)\b(create|drop|alter)(\s+)materialized\s+view\b(?:\s+if\s+not\s+exists\b)?`), "${1}${2}view"},
		{regexp.MustCompile(`(?i)\)\s*append\s+only\b`), ")"},
		{regexp.MustCompile(`(?i)\bdouble\b(\s*[,);\[]|\s+(?:not|primary|default)\b)`), "double precision$1"},
	}
	oracleNoops = []*regexp.Regexp{regexp.MustCompile(`(?i)^\s*(flush|wait)\s*;?\s*$`)}

	settingStatement = regexp.MustCompile(`(?is)^\s*(set|reset|show)\b`)
	indexStatement   = regexp.MustCompile(`(?is)^\s*create\s+index\b`)
)

// oracleCannot: settings that a plain PostgreSQL has not, and indexes on what
// is a view there.
func oracleCannot(sql string, e *serverError) bool {
	return (e.code == "42704" || e.code == "22023") && settingStatement.MatchString(sql) ||
		e.code == "42809" && indexStatement.MatchString(sql)
}
