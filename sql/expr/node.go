package expr

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// opcode is the kind of a node.
type opcode uint8

const (
	opColumn opcode = iota
	opConst
	opCall
	opLogic
	opNot
	opIsNull
	opCase
	opCoalesce
	opArray
	opRow
	opIn
	opArrayOp
	opJSON
)

// node is a compiled expression. Equal subexpressions are one node, so that
// each is computed once a frame.
type node struct {
	op       opcode
	id       int
	kind     columnar.Kind
	typ      types.Type
	args     []*node
	light    bool // cheap and never fails: may be computed for rows that do not need it
	volatile bool

	col    int           // opColumn
	val    *columnar.Vec // opConst
	call   *Call         // opCall
	kernel Kernel        // opCall
	and    bool          // opLogic
	not    bool          // opIsNull
	els    bool          // opCase: the last of args is ELSE; the others are condition, result, …
	set    *constSet     // opIn
	arrop  *arrayOp      // opArrayOp
	names  []string      // opRow
	json   *JSONExpr     // opJSON
}

// compiler turns expressions into nodes.
type compiler struct {
	nodes []*node
	slab  []node // room for nodes
	// seen are the expressions that have a node, byHash those of them that are many.
	seen   []compiled
	byHash map[uint64][]compiled
}

type compiled struct {
	hash uint64
	e    Expr
	n    *node
}

// fewNodes is how many expressions are looked through one by one.
const fewNodes = 32

// known is the node of an expression that is equal to e, nil if there is none.
func (c *compiler) known(h uint64, e Expr) *node {
	list := c.seen
	if c.byHash != nil {
		list = c.byHash[h]
	}
	for i := range list {
		if p := &list[i]; p.hash == h && !p.n.volatile && Equal(p.e, e) {
			return p.n
		}
	}
	return nil
}

func (c *compiler) note(p compiled) {
	if c.byHash == nil {
		if c.seen = append(c.seen, p); len(c.seen) <= fewNodes {
			return
		}
		c.byHash = map[uint64][]compiled{}
		for _, p := range c.seen {
			c.byHash[p.hash] = append(c.byHash[p.hash], p)
		}
		return
	}
	c.byHash[p.hash] = append(c.byHash[p.hash], p)
}

// node makes a node.
func (c *compiler) node(n node) *node {
	if len(c.slab) == cap(c.slab) {
		c.slab = make([]node, 0, min(max(2*cap(c.slab), 4), 64))
	}
	c.slab = append(c.slab, n)
	return &c.slab[len(c.slab)-1]
}

// compile makes the node of e.
func (c *compiler) compile(e Expr) (*node, error) {
	k, constant := e.(*Const)
	var h uint64
	if !constant {
		h = Hash(e)
		if n := c.known(h, e); n != nil {
			return n, nil
		}
	}
	var n *node
	var err error
	if constant {
		n = c.node(node{op: opConst, val: k.Val})
	} else if n, err = c.make(e); err != nil {
		return nil, err
	}
	n.typ = e.Type()
	n.kind = n.typ.Kind()
	n.id = len(c.nodes)
	for _, a := range n.args {
		n.volatile = n.volatile || a.volatile
	}
	n.light = n.isLight()
	c.nodes = append(c.nodes, n)
	if !constant {
		c.note(compiled{h, e, n})
	}
	return n, nil
}

// isLight reports whether computing n for rows that do not need it is harmless.
func (n *node) isLight() bool {
	if n.volatile {
		return false
	}
	for _, a := range n.args {
		if !a.light {
			return false
		}
	}
	switch n.op {
	case opColumn, opConst, opLogic, opNot, opIsNull:
		return true
	case opIn:
		return true
	case opCall:
		fn := n.call.Fn
		if fn.Relabel {
			return true
		}
		return fn.Total && (fn.Operator && n.kind != columnar.KindBytes || n.allFixed())
	case opCase, opCoalesce:
		return len(n.args) <= 8
	}
	return false
}

func (n *node) allFixed() bool {
	if n.kind == columnar.KindBytes {
		return false
	}
	for _, a := range n.args {
		if a.kind == columnar.KindBytes {
			return false
		}
	}
	return true
}

func (c *compiler) all(es []Expr) ([]*node, error) {
	ns := make([]*node, len(es))
	for i, e := range es {
		n, err := c.compile(e)
		if err != nil {
			return nil, err
		}
		ns[i] = n
	}
	return ns, nil
}

func (c *compiler) make(e Expr) (n *node, err error) {
	switch e := e.(type) {
	case *Call:
		return c.makeCall(e)
	case *InList:
		return c.makeIn(e)
	case *ArrayOp:
		return c.makeArrayOp(e)
	}
	n = c.node(node{})
	switch e := e.(type) {
	case *Column:
		n.op, n.col = opColumn, e.Index
	case *Logic:
		n.op, n.and = opLogic, e.And
		n.args, err = c.all(e.Args)
	case *Not:
		n.op = opNot
		n.args, err = c.all([]Expr{e.Arg})
	case *IsNull:
		n.op, n.not = opIsNull, e.Not
		n.args, err = c.all([]Expr{e.Arg})
	case *Case:
		n.op = opCase
		var es []Expr
		for _, w := range e.Whens {
			es = append(es, w.Cond, w.Then)
		}
		if e.Else != nil {
			es = append(es, e.Else)
			n.els = true
		}
		n.args, err = c.all(es)
	case *Coalesce:
		n.op = opCoalesce
		n.args, err = c.all(e.Args)
	case *ArrayCtor:
		n.op = opArray
		n.args, err = c.all(e.Elems)
	case *Row:
		n.op, n.names = opRow, e.Names
		n.args, err = c.all(e.Fields)
	case *JSONExpr:
		n.op, n.json = opJSON, e
		n.args, err = c.all(e.operands())
	case *Param:
		return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", e.Index).At(e.Pos)
	default:
		return nil, pgerror.New(pgerror.InternalError, "expression %T cannot be evaluated", e)
	}
	return n, err
}

func (c *compiler) makeCall(e *Call) (*node, error) {
	if e.Fn.Relabel {
		arg, err := c.compile(e.Args[0])
		if err != nil {
			return nil, err
		}
		return c.node(node{op: opCall, call: e, args: []*node{arg}}), nil
	}
	if nullByStrictness(e) {
		return c.node(node{op: opConst, val: NullVec(e.Typ)}), nil
	}
	args, err := c.all(e.Args)
	if err != nil {
		return nil, err
	}
	n := c.node(node{op: opCall, call: e, args: args, volatile: e.Fn.Volatility == Volatile, kernel: e.Fn.Eval})
	if e.Fn.Bind != nil {
		if n.kernel, err = e.Fn.Bind(e); err != nil {
			return nil, err
		}
	}
	if n.kernel == nil {
		return nil, pgerror.Unsupported("function " + e.Fn.Name)
	}
	return n, nil
}

// nullByStrictness reports whether a call is NULL whatever its other arguments
// are; like PostgreSQL, one does not evaluate them then.
func nullByStrictness(c *Call) bool {
	return c.Fn.Strict && slices.ContainsFunc(c.Args, IsNullConst)
}

// eval computes n for the rows of f: a vector of f.n values, or of one that
// stands for all.
func (x *Eval) eval(n *node, f *frame) *columnar.Vec {
	if n.op == opConst {
		return n.val
	}
	if v := f.vals[n.id]; v != nil {
		return v
	}
	v := x.inherit(n, f)
	if v == nil {
		v = x.compute(n, f)
		if n.kind == columnar.KindBytes && v.Len() > 1 {
			x.spend(dataSize(v))
		}
	}
	f.vals[n.id] = v
	return v
}

// inherit takes a value that the frame above has already.
func (x *Eval) inherit(n *node, f *frame) *columnar.Vec {
	if n.op == opColumn {
		if f.rows == nil {
			return f.cols[n.col]
		}
		return x.gather(f.cols[n.col], -1, f.rows)
	}
	if f.parent == nil {
		return nil
	}
	v := f.parent.vals[n.id]
	if v == nil {
		return nil
	}
	return x.gather(v, f.parent.n, f.sel)
}

func (x *Eval) compute(n *node, f *frame) *columnar.Vec {
	switch n.op {
	case opCall:
		return x.call(n, f)
	case opLogic:
		return x.logic(n, f)
	case opNot:
		return x.not(x.eval(n.args[0], f))
	case opIsNull:
		return x.isNull(x.eval(n.args[0], f), n.not)
	case opCase:
		return x.caseWhen(n, f)
	case opCoalesce:
		return x.coalesce(n, f)
	case opArray:
		return x.array(n, f)
	case opRow:
		return x.row(n, f)
	case opIn:
		return n.set.eval(x, x.eval(n.args[0], f))
	case opJSON:
		return x.jsonQuery(n, f)
	default:
		return x.arrayOp(n, f)
	}
}

// call evaluates a function. A call with constant arguments is evaluated once.
func (x *Eval) call(n *node, f *frame) *columnar.Vec {
	if n.call.Fn.Relabel {
		return x.eval(n.args[0], f)
	}
	var few [4]*columnar.Vec
	args := few[:0]
	rows := 1
	for _, a := range n.args {
		v := x.eval(a, f)
		if v.Len() != 1 {
			rows = f.n
		}
		args = append(args, v)
	}
	if n.volatile {
		rows = f.n
	}
	if rows == 1 && x.most > 0 && f.n != 1 {
		return x.applyToConstants(n, args, f)
	}
	return x.apply(n.call, n.kernel, args, rows, f)
}

// apply runs a kernel over arguments of rows values each, or of one.
func (x *Eval) apply(c *Call, kernel Kernel, args []*columnar.Vec, rows int, f *frame) *columnar.Vec {
	var skip columnar.Bitmap
	if c.Fn.Strict {
		for _, v := range args {
			if v.Nulls() == nil {
				continue
			}
			if v.Len() != 1 || rows == 1 {
				skip = orNulls(skip, v.Nulls())
			} else if v.Null(0) {
				return nullOf(c.Typ.Kind())
			}
		}
		if rows == 1 && skip != nil && skip.Get(0) {
			return nullOf(c.Typ.Kind())
		}
	}
	if c.Fn.Consts == ExpandConsts && rows != 1 {
		for i, v := range args {
			args[i] = x.expand(v, rows)
		}
	}
	oldFrame, oldSkip, oldFan := x.frame, x.skip, x.fan
	x.frame, x.skip, x.fan = f, skip, rows == 1 && f.n != 1
	out := kernel(c, x, args, rows)
	x.frame, x.skip, x.fan = oldFrame, oldSkip, oldFan
	if skip == nil {
		return out
	}
	for _, a := range args {
		if a == out {
			if len(args) == 1 {
				return out
			}
			out = copyVec(out)
		}
	}
	return overlay(out, skip)
}

func nullOf(kind columnar.Kind) *columnar.Vec {
	b := columnar.NewBuilder(kind, 1)
	b.Null()
	return b.Build()
}

// copyVec copies the values of v, so that they can be changed.
func copyVec(v *columnar.Vec) *columnar.Vec {
	b := columnar.NewBuilder(v.Kind(), v.Len())
	for i := range v.Len() {
		b.AppendFrom(v, i)
	}
	return b.Build()
}

// not is three-valued negation.
func (x *Eval) not(v *columnar.Vec) *columnar.Vec {
	out := x.resultOf(columnar.KindBool, v.Len())
	src, dst := rawBools(v), rawBools(out)
	for i, b := range src {
		dst[i] = b ^ 1
	}
	if v.Nulls() == nil {
		return out
	}
	return overlay(out, v.Nulls())
}

func (x *Eval) isNull(v *columnar.Vec, not bool) *columnar.Vec {
	out := x.resultOf(columnar.KindBool, v.Len())
	dst := rawBools(out)
	flip := byte(0)
	if not {
		flip = 1
	}
	nulls := v.Nulls()
	if nulls == nil {
		for i := range dst {
			dst[i] = flip
		}
		return out
	}
	for i := range dst {
		dst[i] = byte(nulls[i>>6]>>(uint(i)&63)&1) ^ flip
	}
	return out
}
