package expr

import (
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Sequences is what the functions of sequences act on; a sequence is named by
// its OID.
type Sequences interface {
	Next(oid uint32) (int64, error)
	Current(oid uint32) (int64, error)
	Set(oid uint32, value int64, called bool) error
	Last() (int64, error)
}

func init() {
	regclass := types.Of(types.OIDRegclass)
	register := func(name string, args []types.Type, f func(s Sequences, a Args, i int) (int64, error)) {
		k := RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			if x.Context == nil || x.Sequences == nil {
				return pgerror.Unsupported(name + "() here")
			}
			v, err := f(x.Sequences, a, i)
			if err != nil {
				return pgerror.As(err)
			}
			out.Int64(v)
			return nil
		})
		Register(Function{Name: name, Args: args, Ret: types.Int8, Strict: true, Volatility: Volatile, Sequential: true, Consts: ScalarConsts, Eval: k})
	}
	oid := func(a Args, i int) uint32 { return uint32(a.Int64(0, i)) }
	register("nextval", []types.Type{regclass}, func(s Sequences, a Args, i int) (int64, error) { return s.Next(oid(a, i)) })
	register("currval", []types.Type{regclass}, func(s Sequences, a Args, i int) (int64, error) { return s.Current(oid(a, i)) })
	register("lastval", nil, func(s Sequences, _ Args, _ int) (int64, error) { return s.Last() })
	register("setval", []types.Type{regclass, types.Int8}, func(s Sequences, a Args, i int) (int64, error) {
		return a.Int64(1, i), s.Set(oid(a, i), a.Int64(1, i), true)
	})
	register("setval", []types.Type{regclass, types.Int8, types.Bool}, func(s Sequences, a Args, i int) (int64, error) {
		return a.Int64(1, i), s.Set(oid(a, i), a.Int64(1, i), a.Bool(2, i))
	})
}
