package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
	"github.com/streamdb/streamdb/sql/types"
)

var (
	tsVector = types.Of(types.OIDTSVector)
	tsQuery  = types.Of(types.OIDTSQuery)
	charType = types.Char
)

// queryTrees reads queries; of one that comes again the tree is kept.
type queryTrees struct {
	last  []byte
	known bool
	tree  *textsearch.Node
}

func (t *queryTrees) of(q []byte) *textsearch.Node {
	if !t.known || string(t.last) != string(q) {
		t.last, t.known = append(t.last[:0], q...), true
		t.tree = textsearch.Query(t.last).Tree()
	}
	return t.tree
}

// matchKernel is the kernel of @@; vector is which argument is the document.
func matchKernel(vector int) Kernel {
	return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[bool](x, n)
		a := Args(args)
		var trees queryTrees
		for i := range dst {
			dst[i] = !a.anyNull(i) && textsearch.Match(a.Bytes(vector, i), trees.of(a.Bytes(1-vector, i)))
		}
		return out
	}
}

// tsRow is a rowFunc that appends a value of bytes.
func tsRow(f func(dst []byte, a Args, i int) ([]byte, error)) rowFunc {
	return func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		return extend(out, func(dst []byte) ([]byte, error) { return f(dst, a, i) })
	}
}

// setWeight is setweight(vector, weight [, lexemes]).
func setWeight(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	var c byte
	if b := a.Bytes(1, i); len(b) > 0 {
		c = b[0]
	}
	w, ok := textsearch.ParseWeight(c)
	if !ok {
		if len(a) == 3 {
			return pgerror.New(pgerror.InternalError, "unrecognized weight: %c", c)
		}
		return pgerror.New(pgerror.InternalError, "unrecognized weight: %d", int8(c))
	}
	var only func([]byte) bool
	if len(a) == 3 {
		only = inArray(a.Bytes(2, i))
	}
	out.Extend(func(dst []byte) []byte { return textsearch.SetWeight(dst, a.Bytes(0, i), w, only) })
	return nil
}

// inArray tests for the elements of an array of texts.
func inArray(b []byte) func([]byte) bool {
	arr := types.ReadArray(b)
	set := make(map[string]bool, arr.N)
	for k := range arr.N {
		if !arr.Null(k) {
			set[string(arr.Bytes(k))] = true
		}
	}
	return func(word []byte) bool { return set[string(word)] }
}

// tsFilter is ts_filter(vector, weights).
func tsFilter(dst []byte, a Args, i int) ([]byte, error) {
	arr := types.ReadArray(a.Bytes(1, i))
	var weights uint8
	for k := range arr.N {
		if arr.Null(k) {
			return dst, pgerror.New(pgerror.NullValueNotAllowed, "weight array may not contain nulls")
		}
		var c byte
		if b := arr.Bytes(k); len(b) > 0 {
			c = b[0]
		}
		w, ok := textsearch.ParseWeight(c)
		if !ok {
			return dst, errParam("unrecognized weight: \"%c\"", c)
		}
		weights |= 1 << w
	}
	return textsearch.Filter(dst, a.Bytes(0, i), weights)
}

// lexemeArray is array_to_tsvector(lexemes).
func lexemeArray(dst []byte, a Args, i int) ([]byte, error) {
	arr := types.ReadArray(a.Bytes(0, i))
	words := make([][]byte, arr.N)
	for k := range words {
		if arr.Null(k) {
			return dst, pgerror.New(pgerror.NullValueNotAllowed, "lexeme array may not contain nulls")
		}
		if words[k] = arr.Bytes(k); len(words[k]) == 0 {
			return textsearch.AppendLexemes(dst, words[k:k+1])
		}
	}
	return textsearch.AppendLexemes(dst, words)
}

// textArray appends an array of n texts.
func textArray(dst []byte, n int, at func(i int) []byte) []byte {
	b := columnar.NewBuilder(columnar.KindBytes, n)
	for i := range n {
		b.Bytes(at(i))
	}
	return types.AppendArray(dst, types.OIDText, []types.Dim{{Len: int32(n), Lower: 1}}, b.Build(), 0, n)
}

// unnestVector gives the lexemes of a document, with their positions and
// weights.
func unnestVector(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	v := textsearch.Vector(Args(args).Bytes(0, i))
	for k := range v.Len() {
		out[0].Bytes(v.Word(k))
		n := v.PosCount(k)
		if n == 0 {
			out[1].Null()
			out[2].Null()
			continue
		}
		pos := columnar.NewBuilder(columnar.KindInt16, n)
		for p := range n {
			pos.Int16(int16(v.Pos(k, p).At()))
		}
		out[1].Extend(func(dst []byte) []byte {
			return types.AppendArray(dst, types.OIDInt2, []types.Dim{{Len: int32(n), Lower: 1}}, pos.Build(), 0, n)
		})
		out[2].Extend(func(dst []byte) []byte {
			return textArray(dst, n, func(p int) []byte { return []byte{'D' - v.Pos(k, p).Weight()} })
		})
	}
	return v.Len(), nil
}

// rankWeights reads the array of weights of a rank.
func rankWeights(b []byte) ([4]float32, *pgerror.Error) {
	var w [4]float32
	arr := types.ReadArray(b)
	switch {
	case arr.NDim != 1:
		return w, pgerror.New(pgerror.ArraySubscriptError, "array of weight must be one-dimensional")
	case arr.N < len(w):
		return w, pgerror.New(pgerror.ArraySubscriptError, "array of weight is too short")
	}
	for k := range arr.N {
		if arr.Null(k) {
			return w, pgerror.New(pgerror.NullValueNotAllowed, "array of weight must not contain nulls")
		}
	}
	elems := columnar.NewBuilder(columnar.KindFloat32, arr.N)
	arr.AppendElems(elems, 0, len(w))
	copy(w[:], elems.Build().Float32s())
	w, err := textsearch.CheckWeights(w)
	if err != nil {
		return w, pgerror.As(err)
	}
	return w, nil
}

// rankFunc is ts_rank or ts_rank_cd.
type rankFunc = func(w [4]float32, v textsearch.Vector, q *textsearch.Node, norm int32) float32

// rankKernel has the arguments [weights,] vector, query [, normalization].
func rankKernel(f rankFunc, weights, norm bool) Kernel {
	return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		var trees queryTrees
		return RowKernel(func(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			w, how := textsearch.DefaultWeights, int32(0)
			if weights {
				var err *pgerror.Error
				if w, err = rankWeights(a.Bytes(0, i)); err != nil {
					return err
				}
				a = a[1:]
			}
			if norm {
				how = a.Int32(2, i)
			}
			out.Float32(f(w, a.Bytes(0, i), trees.of(a.Bytes(1, i)), how))
			return nil
		})(c, x, args, n)
	}
}

func registerVectorFunctions() {
	type ts = []types.Type
	texts := types.Of(types.OIDTextArray)
	registerCompare(tsVector, tsVector, Immutable, cmpTyped)
	rowOp("||", tsVector, tsRow(func(dst []byte, a Args, i int) ([]byte, error) {
		return textsearch.Concat(dst, a.Bytes(0, i), a.Bytes(1, i))
	}), tsVector, tsVector)
	totalFn("length", types.Int4, func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[int32](x, n)
		a := Args(args)
		for i := range dst {
			if dst[i] = 0; !a.Null(0, i) {
				dst[i] = int32(textsearch.Vector(a.Bytes(0, i)).Len())
			}
		}
		return out
	}, tsVector)
	rowFn("strip", tsVector, tsRow(func(dst []byte, a Args, i int) ([]byte, error) { return textsearch.Strip(dst, a.Bytes(0, i)) }), tsVector)
	rowFn("setweight", tsVector, setWeight, tsVector, charType)
	rowFn("setweight", tsVector, setWeight, tsVector, charType, texts)
	rowFn("ts_delete", tsVector, tsRow(func(dst []byte, a Args, i int) ([]byte, error) {
		word := a.Bytes(1, i)
		return textsearch.Delete(dst, a.Bytes(0, i), func(w []byte) bool { return string(w) == string(word) })
	}), tsVector, types.Text)
	rowFn("ts_delete", tsVector, tsRow(func(dst []byte, a Args, i int) ([]byte, error) {
		return textsearch.Delete(dst, a.Bytes(0, i), inArray(a.Bytes(1, i)))
	}), tsVector, texts)
	rowFn("ts_filter", tsVector, tsRow(tsFilter), tsVector, types.Of(types.OIDCharArray))
	rowFn("array_to_tsvector", tsVector, tsRow(lexemeArray), texts)
	rowFn("tsvector_to_array", texts, tsRow(func(dst []byte, a Args, i int) ([]byte, error) {
		v := textsearch.Vector(a.Bytes(0, i))
		return textArray(dst, v.Len(), v.Word), nil
	}), tsVector)
	RegisterTableFunction(TableFunction{
		Name: "unnest", Args: ts{tsVector}, Cols: ts{types.Text, types.Of(types.OIDInt2Array), texts},
		Names: []string{"lexeme", "positions", "weights"}, Strict: true, Eval: unnestVector,
	})
}

func registerQueryFunctions() {
	registerCompare(tsQuery, tsQuery, Immutable, cmpTyped)
	join := func(op textsearch.Op) rowFunc {
		return tsRow(func(dst []byte, a Args, i int) ([]byte, error) {
			distance := 1
			if len(a) == 3 {
				distance = int(a.Int32(2, i))
			}
			return textsearch.Join(dst, a.Bytes(0, i), a.Bytes(1, i), op, distance)
		})
	}
	rowOp("&&", tsQuery, join(textsearch.OpAnd), tsQuery, tsQuery)
	rowOp("||", tsQuery, join(textsearch.OpOr), tsQuery, tsQuery)
	rowOp("<->", tsQuery, join(textsearch.OpPhrase), tsQuery, tsQuery)
	rowFn("tsquery_phrase", tsQuery, join(textsearch.OpPhrase), tsQuery, tsQuery, types.Int4)
	rowOp("!!", tsQuery, tsRow(func(dst []byte, a Args, i int) ([]byte, error) { return textsearch.Negate(dst, a.Bytes(0, i)) }), tsQuery)
	contains := func(outer int) Kernel {
		return func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			dst, out := Result[bool](x, n)
			a := Args(args)
			for i := range dst {
				dst[i] = !a.anyNull(i) && textsearch.Contains(a.Bytes(outer, i), a.Bytes(1-outer, i))
			}
			return out
		}
	}
	totalOp("@>", types.Bool, contains(0), tsQuery, tsQuery)
	totalOp("<@", types.Bool, contains(1), tsQuery, tsQuery)
	totalFn("numnode", types.Int4, func(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
		dst, out := Result[int32](x, n)
		a := Args(args)
		for i := range dst {
			if dst[i] = 0; !a.Null(0, i) {
				dst[i] = int32(textsearch.Query(a.Bytes(0, i)).Len())
			}
		}
		return out
	}, tsQuery)
	totalFn("querytree", types.Text, bytesAppend(func(dst, q []byte) []byte { return textsearch.AppendIndexable(dst, q) }), tsQuery)
	rowFn("ts_rewrite", tsQuery, tsRow(func(dst []byte, a Args, i int) ([]byte, error) {
		return textsearch.Rewrite(dst, a.Bytes(0, i), a.Bytes(1, i), a.Bytes(2, i))
	}), tsQuery, tsQuery, tsQuery)
}

func init() {
	registerVectorFunctions()
	registerQueryFunctions()
	for _, symbol := range []string{"@@", "@@@"} {
		totalOp(symbol, types.Bool, matchKernel(0), tsVector, tsQuery)
		totalOp(symbol, types.Bool, matchKernel(1), tsQuery, tsVector)
	}
	weights := types.Of(types.OIDFloat4Array)
	for name, f := range map[string]rankFunc{"ts_rank": textsearch.Rank, "ts_rank_cd": textsearch.RankCover} {
		for _, w := range []bool{false, true} {
			for _, norm := range []bool{false, true} {
				args := []types.Type{tsVector, tsQuery}
				if w {
					args = append([]types.Type{weights}, args...)
				}
				if norm {
					args = append(args, types.Int4)
				}
				Register(Function{Name: name, Args: args, Ret: types.Float4, Strict: true, Consts: ScalarConsts, Eval: rankKernel(f, w, norm)})
			}
		}
	}
}
