package pgcatalog

import (
	"fmt"

	"github.com/streamdb/streamdb/catalog"
)

// Foreign keys are kept by triggers in PostgreSQL: two on the table that refers, two on
// the one referred to. The catalogs show them, as nothing else has a trigger.

func init() {
	define(map[string]definition{"pg_trigger": {compute: triggers}})
}

// triggerOID is that of the i-th trigger of all.
func triggerOID(i int) uint32 { return 1<<31 + uint32(i) }

// trigger is a row of pg_trigger.
type trigger struct {
	oid      uint32
	on, from *rel
	key      constraintRow
	event    string
	function string
	part     byte // 'a' of the table referred to, 'c' of the one that refers
	deferred bool // it waits where the constraint does
}

// triggerEvents are the bits of pg_trigger.tgtype for a trigger after each row.
var triggerEvents = map[string]int64{"INSERT": 1 | 1<<2, "DELETE": 1 | 1<<3, "UPDATE": 1 | 1<<4}

// triggerActions name the functions of what a foreign key does.
var triggerActions = map[string]string{"": "noaction", "restrict": "restrict", "cascade": "cascade", "set null": "setnull", "set default": "setdefault"}

// hasTriggers reports whether foreign keys are on or refer to the relation.
func (m *model) hasTriggers(r *rel) bool {
	o := r.obj
	return o != nil && (len(o.Foreign) > 0 || o.Kind == catalog.KindTable && len(m.snap.References(o.ID)) > 0)
}

func (m *model) triggers() []trigger {
	var out []trigger
	for _, c := range m.constraints() {
		if c.foreign == nil {
			continue
		}
		action := func(event, short, does string) trigger {
			return trigger{on: c.ref, from: c.table, key: c, event: event, function: "RI_FKey_" + triggerActions[does] + "_" + short, part: 'a', deferred: does == ""}
		}
		check := func(event, short string) trigger {
			return trigger{on: c.table, from: c.ref, key: c, event: event, function: "RI_FKey_check_" + short, part: 'c', deferred: true}
		}
		out = append(out, action("DELETE", "del", c.foreign.OnDelete), action("UPDATE", "upd", c.foreign.OnUpdate),
			check("INSERT", "ins"), check("UPDATE", "upd"))
	}
	for i := range out {
		out[i].oid = triggerOID(i)
		out[i].deferred = out[i].deferred && out[i].key.foreign.Deferrable
	}
	return out
}

func (t *trigger) name() string { return fmt.Sprintf("RI_ConstraintTrigger_%c_%d", t.part, t.oid) }

func triggers(m *model, _ Env, f *filler) {
	ts := m.triggers()
	f.n = len(ts)
	f.oid("oid", func(i int) uint32 { return ts[i].oid })
	f.oid("tgrelid", func(i int) uint32 { return ts[i].on.oid })
	f.text("tgname", func(i int) string { return ts[i].name() })
	f.oid("tgfoid", func(i int) uint32 { return supportProc(ts[i].function) })
	f.int("tgtype", func(i int) int64 { return triggerEvents[ts[i].event] })
	f.all(byte('O'), "tgenabled")
	f.all(true, "tgisinternal")
	f.oid("tgconstrrelid", func(i int) uint32 { return ts[i].from.oid })
	f.oid("tgconstrindid", func(i int) uint32 {
		if x := ts[i].key.index; x != nil {
			return x.oid
		}
		return 0
	})
	f.oid("tgconstraint", func(i int) uint32 { return ts[i].key.oid })
	f.bool("tgdeferrable", func(i int) bool { return ts[i].deferred })
	f.bool("tginitdeferred", func(i int) bool { return ts[i].deferred && ts[i].key.foreign.Deferred })
	f.extend("tgattr", func(_ int, dst []byte) []byte { return attrArray(dst, nil, 0) })
}

// triggerDefCall is pg_get_triggerdef.
func triggerDefCall(c *call) result {
	oid := c.oid(0)
	ts := c.m.triggers()
	if oid < triggerOID(0) || oid >= triggerOID(len(ts)) {
		return none
	}
	t := &ts[oid-triggerOID(0)]
	on := t.on.qualified()
	if len(c.args) > 1 && c.args[1] == "t" {
		on = c.r.relName(c.m, t.on)
	}
	wait := "NOT DEFERRABLE INITIALLY IMMEDIATE"
	if t.deferred {
		wait = "DEFERRABLE INITIALLY IMMEDIATE"
		if t.key.foreign.Deferred {
			wait = "DEFERRABLE INITIALLY DEFERRED"
		}
	}
	return text(fmt.Sprintf("CREATE CONSTRAINT TRIGGER %s AFTER %s ON %s FROM %s %s FOR EACH ROW EXECUTE FUNCTION %s()",
		quoteIdent(t.name()), t.event, on, c.r.relName(c.m, t.from), wait, quoteIdent(t.function)))
}
