package pgwire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected answers in testdata")

// TestTranscripts plays the conversations of testdata/*.txt. A file is a list
// of blocks: what the client sends, a message a line, `----`, and what the
// server answers up to the last ReadyForQuery that is due or the end of the
// connection. Each file is one connection; a first line `# new` gives none.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { playFile(t, f) })
	}
}

type block struct{ head, send, want []string }

func readBlocks(t *testing.T, path string) []block {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []block
	var b block
	inWant := false
	sc := bufio.NewScanner(strings.NewReader(string(data)))
	for sc.Scan() {
		line := sc.Text()
		switch {
		case line == "" && (inWant || len(b.send) > 0):
			out, b, inWant = append(out, b), block{}, false
		case line == "":
		case line == "----":
			inWant = true
		case inWant:
			b.want = append(b.want, line)
		case strings.HasPrefix(line, "#"):
			b.head = append(b.head, line)
		default:
			b.send = append(b.send, line)
		}
	}
	if len(b.send) > 0 {
		out = append(out, b)
	}
	return out
}

func playFile(t *testing.T, path string) {
	blocks := readBlocks(t, path)
	_, _, addr := startServer(t, Options{MaxMessageSize: 1 << 16, StartupTimeout: 5 * time.Second})
	var p *player
	var text strings.Builder
	for _, b := range blocks {
		if p == nil || b.send[0] == "new" {
			if p != nil {
				p.nc.Close()
			}
			p = newPlayer(t, addr)
			if b.send[0] != "new" {
				p.say("Startup user=joe")
				p.hear(1)
			}
		}
		due := 0
		for _, line := range b.send {
			due += p.say(line)
		}
		got := p.hear(due)
		if !*rewrite && strings.Join(got, "\n") != strings.Join(b.want, "\n") {
			t.Errorf("%s: %s\ngot:\n%s\nwant:\n%s", path, strings.Join(b.send, " / "), strings.Join(got, "\n"), strings.Join(b.want, "\n"))
		}
		for _, part := range [][]string{b.head, b.send, {"----"}, got} {
			for _, line := range part {
				text.WriteString(line + "\n")
			}
		}
		text.WriteString("\n")
	}
	p.nc.Close()
	if *rewrite {
		if err := os.WriteFile(path, []byte(strings.TrimSuffix(text.String(), "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type player struct {
	t  *testing.T
	nc net.Conn
	fe *pgproto3.Frontend
}

func newPlayer(t *testing.T, addr string) *player {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &player{t, nc, pgproto3.NewFrontend(nc, nc)}
}

// say sends one line and tells how many ReadyForQuery answer it: none for a
// line that starts with `~`.
func (p *player) say(line string) int {
	line, silent := strings.CutPrefix(line, "~")
	words := splitWords(p.t, line)
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	num := func(i int) uint32 { n, _ := strconv.ParseUint(arg(i), 10, 32); return uint32(n) }
	due := 0
	switch words[0] {
	case "new":
	case "Startup":
		m := &pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{}}
		for _, w := range words[1:] {
			k, v, _ := strings.Cut(w, "=")
			if k == "version" {
				n, _ := strconv.ParseUint(v, 0, 32)
				m.ProtocolVersion = uint32(n)
				continue
			}
			m.Parameters[k] = v
		}
		p.fe.Send(m)
		due = 1
	case "Query":
		p.fe.Send(&pgproto3.Query{String: arg(1)})
		due = 1
	case "Parse":
		m := &pgproto3.Parse{Name: arg(1), Query: arg(2)}
		for i := 3; i < len(words); i++ {
			m.ParameterOIDs = append(m.ParameterOIDs, num(i))
		}
		p.fe.Send(m)
	case "Bind":
		p.fe.Send(bindMessage(words))
	case "Describe":
		p.fe.Send(&pgproto3.Describe{ObjectType: arg(1)[0], Name: arg(2)})
	case "Close":
		p.fe.Send(&pgproto3.Close{ObjectType: arg(1)[0], Name: arg(2)})
	case "Execute":
		p.fe.Send(&pgproto3.Execute{Portal: arg(1), MaxRows: num(2)})
	case "Sync":
		p.fe.Send(&pgproto3.Sync{})
		due = 1
	case "Flush":
		p.fe.Send(&pgproto3.Flush{})
	case "CopyData":
		p.fe.Send(&pgproto3.CopyData{Data: []byte(arg(1))})
	case "CopyDone":
		p.fe.Send(&pgproto3.CopyDone{})
	case "CopyFail":
		p.fe.Send(&pgproto3.CopyFail{Message: arg(1)})
	case "Terminate":
		p.fe.Send(&pgproto3.Terminate{})
		due = 1 << 20
	case "FunctionCall":
		p.fe.Send(&pgproto3.FunctionCall{})
		due = 1
	case "Password":
		p.fe.Send(&pgproto3.PasswordMessage{Password: arg(1)})
	case "Raw": // bytes; the second word says how many ReadyForQuery they are worth, or "close"
		_, _ = p.nc.Write([]byte(arg(1)))
		if due = int(num(2)); arg(2) == "close" {
			due = 1 << 20
		}
	case "Shut": // half-close
		_ = p.nc.(*net.TCPConn).CloseWrite()
		due = 1 << 20
	default:
		p.t.Fatalf("unknown line %q", line)
	}
	if err := p.fe.Flush(); err != nil && !errors.Is(err, net.ErrClosed) {
		p.t.Logf("send: %v", err)
	}
	if silent {
		return 0
	}
	return due
}

// bindMessage reads: Bind PORTAL STATEMENT (PARAM | null | rf=N | pf=N)...
func bindMessage(words []string) *pgproto3.Bind {
	m := &pgproto3.Bind{DestinationPortal: words[1], PreparedStatement: words[2]}
	for _, w := range words[3:] {
		if v, ok := strings.CutPrefix(w, "rf="); ok {
			n, _ := strconv.Atoi(v)
			m.ResultFormatCodes = append(m.ResultFormatCodes, int16(n))
		} else if v, ok := strings.CutPrefix(w, "pf="); ok {
			n, _ := strconv.Atoi(v)
			m.ParameterFormatCodes = append(m.ParameterFormatCodes, int16(n))
		} else if w == "null" {
			m.Parameters = append(m.Parameters, nil)
		} else {
			m.Parameters = append(m.Parameters, []byte(w))
		}
	}
	return m
}

// splitWords splits at blanks; a word may be a Go string literal.
func splitWords(t *testing.T, line string) []string {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if line[0] != '"' {
			w, rest, _ := strings.Cut(line, " ")
			out, line = append(out, w), rest
			continue
		}
		q, err := strconv.QuotedPrefix(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		w, _ := strconv.Unquote(q)
		out, line = append(out, w), line[len(q):]
	}
	return out
}

// hear reads answers until so many ReadyForQuery, or for a moment if none is due.
func (p *player) hear(due int) []string {
	wait := 5 * time.Second
	if due == 0 {
		wait = 150 * time.Millisecond
	}
	_ = p.nc.SetReadDeadline(time.Now().Add(wait))
	var out []string
	for {
		m, err := p.fe.Receive()
		if err != nil {
			if due > 0 || !isTimeout(err) {
				if isTimeout(err) {
					p.t.Errorf("no answer, %d ReadyForQuery due", due)
				}
				out = append(out, "closed")
			}
			return out
		}
		out = append(out, describeMessage(m))
		if _, ok := m.(*pgproto3.ReadyForQuery); ok {
			if due--; due == 0 {
				return out
			}
		}
	}
}

func describeMessage(m pgproto3.BackendMessage) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3.")
	switch m := m.(type) {
	case *pgproto3.RowDescription:
		for _, f := range m.Fields {
			name += fmt.Sprintf(" %s:%d:%d:%d:%d:%d:%d", f.Name, f.TableOID, f.TableAttributeNumber, f.DataTypeOID, f.DataTypeSize, f.TypeModifier, f.Format)
		}
	case *pgproto3.DataRow:
		for _, v := range m.Values {
			if v == nil {
				name += " null"
			} else {
				name += " " + strconv.Quote(string(v))
			}
		}
	case *pgproto3.CommandComplete:
		name += " " + string(m.CommandTag)
	case *pgproto3.ReadyForQuery:
		name += " " + string(m.TxStatus)
	case *pgproto3.ErrorResponse:
		name += describeError(m)
	case *pgproto3.NoticeResponse:
		e := pgproto3.ErrorResponse(*m)
		name += describeError(&e)
	case *pgproto3.ParameterDescription:
		name += fmt.Sprint(" ", m.ParameterOIDs)
	case *pgproto3.ParameterStatus:
		name += " " + m.Name + "=" + m.Value
	case *pgproto3.CopyData:
		name += " " + strconv.Quote(string(m.Data))
	case *pgproto3.CopyInResponse:
		name += fmt.Sprint(" ", m.OverallFormat, m.ColumnFormatCodes)
	case *pgproto3.CopyOutResponse:
		name += fmt.Sprint(" ", m.OverallFormat, m.ColumnFormatCodes)
	case *pgproto3.NegotiateProtocolVersion:
		sort.Strings(m.UnrecognizedOptions)
		name += fmt.Sprint(" ", m.NewestMinorProtocol, m.UnrecognizedOptions)
	case *pgproto3.BackendKeyData:
		if m.ProcessID == 0 || binary.BigEndian.Uint32(m.SecretKey) == 0 {
			name += " zero"
		}
	}
	return name
}

func describeError(e *pgproto3.ErrorResponse) string {
	s := fmt.Sprintf(" %s/%s %s %q", e.Severity, e.SeverityUnlocalized, e.Code, e.Message)
	for _, f := range []struct{ k, v string }{{"D", e.Detail}, {"H", e.Hint}, {"W", e.Where}, {"s", e.SchemaName},
		{"t", e.TableName}, {"c", e.ColumnName}, {"d", e.DataTypeName}, {"n", e.ConstraintName}} {
		if f.v != "" {
			s += " " + f.k + "=" + f.v
		}
	}
	if e.Position != 0 {
		s += fmt.Sprintf(" P=%d", e.Position)
	}
	return s
}
