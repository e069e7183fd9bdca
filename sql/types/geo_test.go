package types

import (
	"encoding/binary"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

var geoTypes = []OID{OIDPoint, OIDLseg, OIDPath, OIDBox, OIDPolygon, OIDLine, OIDCircle}

func TestGeometricInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	num := []string{"1", "0", "-2.5", "1e-7", "3", "NaN", "inf", "-Infinity", "1e400", "1e-400", "x", "", " 4 ", "0x10", "1e", "-", "nan1"}
	tok := []string{"(", "(", "[", "<", "{", ")", ")", "]", ">", "}", ",", ",", " ", ""}
	var in []string
	value := func() string { return num[r.Intn(min(len(num), 5+r.Intn(len(num))))] }
	for range 5000 {
		n := 1 + r.Intn(4)
		var ps []string
		for range n {
			ps = append(ps, pick(r, []string{"(", "(", "(", "", " ( "})+value()+","+value()+pick(r, []string{")", ")", ")", "", ") "}))
		}
		b := strings.Join(ps, ",")
		if r.Intn(5) == 0 {
			b += "," + value()
		}
		b = pick(r, []string{"", "", "(", "[", "<", "{", " ", " ( ", "(("}) + b + pick(r, []string{"", "", ")", "]", ">", "}", " ", " ) ", "))", "x"})
		if r.Intn(6) == 0 {
			k := r.Intn(len(b))
			b = b[:k] + tok[r.Intn(len(tok))] + b[min(len(b), k+r.Intn(2)):]
		}
		in = append(in, b)
	}
	for range 500 {
		in = append(in, "{"+value()+","+value()+","+value()+pick(r, []string{"}", "} ", "", "}x"}), "<("+value()+","+value()+"),"+value()+">", "("+value()+","+value()+"),"+value(), value()+","+value()+","+value(), "("+value()+","+value()+"),("+value()+","+value()+")")
	}
	in = append(in, "", " ", "(", "()", "(,)", "[]", "{}", "<>", "((1,2),3)", "((1,2),(3,4))", "[(1,2),(3,4)]", "(1,2),(3,4)", "1,2,3,4", "((1,2))", "(1,2)", "[(1,2)]", "(((1,2),(3,4)))", "(1,2,3,4)", "(1,2),(1,2)", "{0,0,1}", "{1,2,3,4}", "((1,2),(3,4)", "[(1,2),(3,4))", "((1,2),(3,4)]")
	for _, o := range geoTypes {
		compareInputs(t, s, Of(o), nil, in)
	}
	compareInputs(t, s, Of(OIDBox).ArrayType(), nil, []string{"{}", "{(1,2),(3,4)}", "{(1,2),(3,4);(0,0),(1,1)}", `{"(1,2),(3,4)";NULL}`, "{(1,2);(3,4)}", "{{1,2,3,4};{0,0,0,0}}", "{(1,2),(3,4);}", "{;}"})
	compareInputs(t, s, Of(OIDPoint).ArrayType(), nil, []string{"{}", `{"(1,2)","3,4"}`, "{(1,2)}", "{NULL}"})
}

func TestGeometricBinaryInputs(t *testing.T) {
	s := oracle.Connect(t)
	r := rand.New(rand.NewSource(*seed))
	for _, o := range geoTypes {
		var in [][]byte
		for range 100 {
			var b []byte
			if o == OIDPath {
				b = append(b, byte(r.Intn(3)))
			}
			if o == OIDPath || o == OIDPolygon {
				b = binary.BigEndian.AppendUint32(b, uint32([]int{0, 1, 2, 2, 3, -1, math.MaxInt32}[r.Intn(7)]))
			}
			for range r.Intn(7) {
				b = binary.BigEndian.AppendUint64(b, math.Float64bits([]float64{0, 1, -1, 2.5, math.NaN(), math.Inf(1), 1e-7}[r.Intn(7)]))
			}
			in = append(in, b, b[:r.Intn(len(b)+1)])
		}
		compareBinaryInputs(t, s, Of(o), in)
	}
}
