package expr

import (
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// AdvisoryLocks is the lock table behind the pg_advisory_* functions.
type AdvisoryLocks interface {
	// Lock takes a lock for the session, or (xact) until the end of the
	// transaction. With try it does not wait and reports whether it has it.
	Lock(key int64, shared, xact, try bool) (bool, error)
	// Unlock releases a session's lock; false if it was not held.
	Unlock(key int64, shared bool) bool
	UnlockAll()
}

var encodings = []string{
	"SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8", "MULE_INTERNAL", "LATIN1", "LATIN2", "LATIN3",
	"LATIN4", "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10", "WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R",
	"WIN1251", "WIN1252", "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250", "WIN1253", "WIN1254", "WIN1255",
	"WIN1257", "KOI8U", "SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004",
}

// encodingAliases are other names of encodings, without separators.
var encodingAliases = map[string]string{
	"UNICODE": "UTF8", "ABC": "WIN1258", "TCVN": "WIN1258", "TCVN5712": "WIN1258", "VSCII": "WIN1258", "ALT": "WIN866", "KOI8": "KOI8R",
	"MSKANJI": "SJIS", "SHIFTJIS": "SJIS", "WIN932": "SJIS", "WIN936": "GBK", "WIN949": "UHC", "WIN950": "BIG5", "WIN": "WIN1251",
	"ISO88591": "LATIN1", "ISO88592": "LATIN2", "ISO88593": "LATIN3", "ISO88594": "LATIN4", "ISO88599": "LATIN5",
	"ISO885910": "LATIN6", "ISO885913": "LATIN7", "ISO885914": "LATIN8", "ISO885915": "LATIN9", "ISO885916": "LATIN10",
}

func encodingToChar(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	if n := a.Int32(0, i); n >= 0 && int(n) < len(encodings) {
		out.String(encodings[n])
	} else {
		out.String("")
	}
	return nil
}

func encodingNumber(_ *Eval, a Args, i int) (int32, *pgerror.Error) {
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '-' || r == '_' || r == ' ' {
				return -1
			}
			return r
		}, strings.ToUpper(s))
	}
	name := clean(string(a.Bytes(0, i)))
	if e, ok := encodingAliases[name]; ok {
		name = e
	}
	name = strings.Replace(name, "WINDOWS", "WIN", 1)
	for n, e := range encodings {
		if clean(e) == name {
			return int32(n), nil
		}
	}
	return -1, nil
}

// sizeUnits are those of pg_size_pretty: the value below which a unit is used,
// and whether it is kept doubled and rounded at the end.
var sizeUnits = []struct {
	name  string
	limit int64
	round bool
}{
	{"bytes", 10 * 1024, false}, {"kB", 20*1024 - 1, true}, {"MB", 20*1024 - 1, true},
	{"GB", 20*1024 - 1, true}, {"TB", 20*1024 - 1, true}, {"PB", 20*1024 - 1, true},
}

func sizePretty(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	n := a.Int64(0, i)
	for k, u := range sizeUnits {
		last := k == len(sizeUnits)-1
		if last || n > -u.limit && n < u.limit {
			if u.round {
				if n < 0 {
					n--
				} else {
					n++
				}
				n /= 2
			}
			out.String(strconv.FormatInt(n, 10) + " " + u.name)
			return nil
		}
		bits := 10
		if !u.round {
			bits-- // the next unit is kept doubled
		}
		n /= 1 << bits
	}
	return nil
}

func sizePrettyNumeric(_ *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	n := a.Bytes(0, i)
	integer := func(v int64) []byte { return decimal.AppendInt64(nil, v) }
	for k, u := range sizeUnits {
		last := k == len(sizeUnits)-1
		if last || decimal.Compare(decimal.Abs(nil, n), integer(u.limit)) < 0 {
			if u.round {
				one := int64(1)
				if decimal.Sign(n) < 0 {
					one = -1
				}
				r, err := decimal.Add(nil, n, integer(one))
				if err == nil {
					n, err = decimal.DivTrunc(nil, r, integer(2))
				}
				if err != nil {
					return pgerror.As(err)
				}
			}
			out.String(decimal.String(n) + " " + u.name)
			return nil
		}
		size := int64(1024)
		if !u.round {
			size = 512
		}
		var err error
		if n, err = decimal.DivTrunc(nil, n, integer(size)); err != nil {
			return pgerror.As(err)
		}
	}
	return nil
}

// cancelFn makes pg_cancel_backend and pg_terminate_backend.
func cancelFn(terminate bool) Kernel {
	return rowFixed(func(x *Eval, a Args, i int) (bool, *pgerror.Error) {
		return x.Context != nil && x.Cancel != nil && x.Cancel(a.Int32(0, i), terminate), nil
	})
}

// advisory registers the functions of one kind of advisory locks, for a bigint
// key and for two integers.
func advisory(name string, f func(l AdvisoryLocks, key int64) (bool, error), void bool) {
	ret := types.Bool
	if void {
		ret = types.Void
	}
	for _, args := range [][]types.Type{{types.Int8}, {types.Int4, types.Int4}} {
		k := RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
			var key int64
			if len(a) == 1 {
				key = a.Int64(0, i)
			} else {
				key = int64(a.Int32(0, i))<<32 | int64(uint32(a.Int32(1, i)))
			}
			if x.Context == nil || x.Locks == nil {
				return pgerror.Unsupported(name + " here")
			}
			ok, err := f(x.Locks, key)
			switch {
			case err != nil:
				return pgerror.As(err)
			case void:
				out.String("")
			default:
				out.Bool(ok)
			}
			return nil
		})
		Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Volatility: Volatile, Consts: ScalarConsts, Eval: k})
	}
}

func registerAdvisory() {
	for _, shared := range []bool{false, true} {
		for _, xact := range []bool{false, true} {
			name := "advisory_"
			if xact {
				name += "xact_"
			}
			name += "lock"
			if shared {
				name += "_shared"
			}
			advisory("pg_"+name, func(l AdvisoryLocks, key int64) (bool, error) { return l.Lock(key, shared, xact, false) }, true)
			advisory("pg_try_"+name, func(l AdvisoryLocks, key int64) (bool, error) { return l.Lock(key, shared, xact, true) }, false)
		}
		name := "pg_advisory_unlock"
		if shared {
			name += "_shared"
		}
		advisory(name, func(l AdvisoryLocks, key int64) (bool, error) { return l.Unlock(key, shared), nil }, false)
	}
	Register(Function{Name: "pg_advisory_unlock_all", Ret: types.Void, Strict: true, Volatility: Volatile,
		Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
			if x.Context != nil && x.Locks != nil {
				x.Locks.UnlockAll()
			}
			return x.expand(TextConst("").Val, n)
		}})
}

// sleep makes a function that waits for as many seconds as f says.
func sleep(f func(x *Eval, a Args, i int) float64) Kernel {
	return RowKernel(func(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
		if s := f(x, a, i); x.Context != nil && x.Sleep != nil && s > 0 {
			if err := x.Sleep(s); err != nil {
				return pgerror.As(err)
			}
		}
		out.String("")
		return nil
	})
}

// mzNow is the time of the epoch under evaluation.
func mzNow(_ *Call, x *Eval, _ []*columnar.Vec, _ int) *columnar.Vec {
	ms := int64(0)
	if x.Context != nil {
		ms = int64(x.Epoch)
	}
	ts := (ms - types.UnixEpochSecond*1000) * 1000
	if !types.ValidTimestamp(ts) {
		ts = types.TimestampInfinity
	}
	return columnar.FromSlice([]int64{ts}, nil)
}

func registerServer() {
	fixed := func(name string, v Volatility, ret types.Type, k Kernel, args ...types.Type) {
		Register(Function{Name: name, Args: args, Ret: ret, Strict: true, Volatility: v, Consts: ScalarConsts, Eval: k})
	}
	constant := func(e *Const) Kernel {
		return func(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec { return x.expand(e.Val, n) }
	}
	fixed("mz_now", Stable, types.TimestampTZ, mzNow)
	fixed("pg_backend_pid", Stable, types.Int4, func(_ *Call, x *Eval, _ []*columnar.Vec, _ int) *columnar.Vec {
		if x.Context == nil {
			return Int4Const(0).Val
		}
		return Int4Const(x.BackendPID).Val
	})
	started := func(_ *Call, x *Eval, _ []*columnar.Vec, _ int) *columnar.Vec {
		if x.Context == nil || x.Started.IsZero() {
			return nullOf(columnar.KindInt64)
		}
		return columnar.FromSlice([]int64{types.TimestampTZFromTime(x.Started)}, nil)
	}
	fixed("pg_postmaster_start_time", Stable, types.TimestampTZ, started)
	fixed("pg_conf_load_time", Stable, types.TimestampTZ, started)
	fixed("mz_uptime", Stable, types.Interval, func(_ *Call, x *Eval, _ []*columnar.Vec, _ int) *columnar.Vec {
		up := types.Span{}
		if x.Context != nil && !x.Started.IsZero() {
			up.Micros = x.nowTZ() - types.TimestampTZFromTime(x.Started)
		}
		return columnar.FromSlice([]columnar.U128{up.Pack()}, nil)
	})
	fixed("mz_is_superuser", Stable, types.Bool, constant(BoolConst(true)))
	fixed("rw_recovery_status", Stable, types.Text, constant(TextConst("RUNNING")))
	fixed("pg_is_in_recovery", Volatile, types.Bool, constant(BoolConst(false)))
	fixed("pg_jit_available", Volatile, types.Bool, constant(BoolConst(false)))
	fixed("pg_is_wal_replay_paused", Volatile, types.Bool, constant(BoolConst(false)))
	fixed("pg_trigger_depth", Stable, types.Int4, constant(Int4Const(0)))
	fixed("pg_my_temp_schema", Stable, types.Oid, constant(Int8Const(0)))
	fixed("pg_is_other_temp_schema", Stable, types.Bool, constant(BoolConst(false)), types.Oid)
	fixed("txid_current", Stable, types.Int8, func(_ *Call, x *Eval, _ []*columnar.Vec, _ int) *columnar.Vec {
		if x.Context == nil {
			return Int8Const(0).Val
		}
		return Int8Const(int64(x.Epoch)).Val
	})
	fixed("pg_encoding_to_char", Stable, types.Name, RowKernel(encodingToChar), types.Int4)
	fixed("pg_char_to_encoding", Stable, types.Int4, rowFixed(encodingNumber), types.Name)
	fixed("pg_size_pretty", Immutable, types.Text, RowKernel(sizePretty), types.Int8)
	fixed("pg_size_pretty", Immutable, types.Text, RowKernel(sizePrettyNumeric), types.Numeric)
	fixed("pg_cancel_backend", Volatile, types.Bool, cancelFn(false), types.Int4)
	fixed("pg_terminate_backend", Volatile, types.Bool, cancelFn(true), types.Int4)
	fixed("pg_terminate_backend", Volatile, types.Bool, cancelFn(true), types.Int4, types.Int8)
	empty := &Const{Val: columnar.FromBytes([]uint32{0, 6}, types.AppendEmptyArray(nil, types.OIDInt4), nil), Typ: types.Of(types.OIDInt4Array)}
	fixed("pg_blocking_pids", Volatile, types.Of(types.OIDInt4Array), constant(empty), types.Int4)
	fixed("pg_sleep", Volatile, types.Void, sleep(func(_ *Eval, a Args, i int) float64 { return a.Float64(0, i) }), types.Float8)
	fixed("pg_sleep_for", Volatile, types.Void, sleep(func(_ *Eval, a Args, i int) float64 {
		return partOfSpan(unitEpoch, types.UnpackInterval(Arg[columnar.U128](a, 0, i))).float()
	}), types.Interval)
	fixed("pg_sleep_until", Volatile, types.Void, sleep(func(x *Eval, a Args, i int) float64 {
		return float64(a.Int64(0, i)-x.clockTZ()) / 1e6
	}), types.TimestampTZ)
	Register(Function{Name: "pg_column_size", Args: []types.Type{types.Of(types.OIDAny)}, Ret: types.Int4, Strict: true, Total: true, Volatility: Stable, Consts: ScalarConsts,
		Eval: rowFixed(func(_ *Eval, a Args, i int) (int32, *pgerror.Error) {
			if w := a[0].Kind().Width(); w != 0 {
				return int32(w), nil
			}
			return int32(len(a.Bytes(0, i)) + 1), nil
		})})
	registerAdvisory()
}
