package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
	"github.com/streamdb/streamdb/sql/textsearch/config"
	"github.com/streamdb/streamdb/sql/types"
)

// parserOID is the OID of the parser, which is called default.
const parserOID = 3722

// checkParser looks whether argument 0 is the parser, by OID or name.
func checkParser(t types.Type, a Args, i int) error {
	if t == types.Oid {
		if oid := a.Int64(0, i); oid != parserOID {
			return pgerror.New(pgerror.InternalError, "cache lookup failed for text search parser %d", oid)
		}
		return nil
	}
	name := string(a.Bytes(0, i))
	parts, err := types.SplitName(name)
	if err != nil {
		return err
	}
	if n := len(parts); parts[n-1] != "default" || n > 2 || n == 2 && parts[0] != "pg_catalog" {
		return pgerror.New(pgerror.UndefinedObject, "text search parser \"%s\" does not exist", name)
	}
	return nil
}

// tokenTypes is ts_token_type(parser).
func tokenTypes(t types.Type) TableKernel {
	return func(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		if err := checkParser(t, args, i); err != nil {
			return 0, err
		}
		for k, tok := range config.TokenTypes {
			out[0].Int32(int32(k + 1))
			out[1].String(tok.Alias)
			out[2].String(tok.Description)
		}
		return len(config.TokenTypes), nil
	}
}

// tokens is ts_parse(parser, text).
func tokens(t types.Type) TableKernel {
	return func(_ *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
		if err := checkParser(t, args, i); err != nil {
			return 0, err
		}
		p := config.NewParser(text(Args(args).Bytes(1, i)))
		for n := 0; ; n++ {
			typ, token := p.Next()
			if typ == 0 {
				return n, nil
			}
			out[0].Int32(int32(typ))
			out[1].String(token)
		}
	}
}

func appendStrings(dst []byte, list []string) []byte {
	return textArray(dst, len(list), func(k int) []byte { return []byte(list[k]) })
}

// debugTokens is ts_debug([config,] text): the tokens with the dictionaries that
// are asked, the one that answers, and its lexemes.
func debugTokens(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	a := Args(args)
	var oid uint32
	if len(a) == 2 {
		oid = uint32(a.Int64(0, i))
	} else {
		var err *pgerror.Error
		if oid, err = x.currentConfig(); err != nil {
			return 0, err
		}
	}
	c := textsearch.ConfigByOID(oid)
	if c == nil {
		return 0, nil
	}
	p := config.NewParser(text(a.Bytes(len(a)-1, i)))
	for n := 0; ; n++ {
		typ, token := p.Next()
		if typ == 0 {
			return n, nil
		}
		out[0].String(config.TokenTypes[typ-1].Alias)
		out[1].String(config.TokenTypes[typ-1].Description)
		out[2].String(token)
		name := config.DictName(c, typ)
		if name == "" {
			out[3].Extend(func(dst []byte) []byte { return types.AppendEmptyArray(dst, types.OIDRegdictionary) })
			out[4].Null()
			out[5].Null()
			continue
		}
		dict := textsearch.DictByName(name).OID
		lexemes, err := config.Lexize(dict, token)
		if err != nil {
			return n, err
		}
		one := columnar.NewBuilder(columnar.KindInt64, 1)
		one.Int64(int64(dict))
		out[3].Extend(func(dst []byte) []byte {
			return types.AppendArray(dst, types.OIDRegdictionary, []types.Dim{{Len: 1, Lower: 1}}, one.Build(), 0, 1)
		})
		out[4].Int64(int64(dict))
		out[5].Extend(func(dst []byte) []byte { return appendStrings(dst, lexemes) })
	}
}

func init() {
	type ts = []types.Type
	registerDocuments()
	texts := types.Of(types.OIDTextArray)
	rowFn("ts_lexize", texts, tsRow(func(dst []byte, a Args, i int) ([]byte, error) {
		lexemes, err := config.Lexize(uint32(a.Int64(0, i)), string(a.Bytes(1, i)))
		if err != nil {
			return dst, err
		}
		return appendStrings(dst, lexemes), nil
	}), regDict, types.Text)
	add := func(name string, v Volatility, k TableKernel, names []string, cols, args ts) {
		RegisterTableFunction(TableFunction{Name: name, Args: args, Cols: cols, Names: names, Strict: true, Volatility: v, Eval: k})
	}
	for _, t := range (ts{types.Oid, types.Text}) {
		v := Immutable
		if t == types.Text {
			v = Stable
		}
		add("ts_token_type", v, tokenTypes(t), []string{"tokid", "alias", "description"}, ts{types.Int4, types.Text, types.Text}, ts{t})
		add("ts_parse", v, tokens(t), []string{"tokid", "token"}, ts{types.Int4, types.Text}, ts{t, types.Text})
	}
	dicts := types.Of(types.OIDRegdictionary.Array())
	names := []string{"alias", "description", "token", "dictionaries", "dictionary", "lexemes"}
	cols := ts{types.Text, types.Text, types.Text, dicts, regDict, texts}
	add("ts_debug", Stable, debugTokens, names, cols, ts{regConfig, types.Text})
	add("ts_debug", Stable, debugTokens, names, cols, ts{types.Text})
}
