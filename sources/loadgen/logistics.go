package loadgen

import (
	"math"
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/decimal"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

// The delivery company: a simulation in ticks of 100 ms. Order k is placed at
// a fixed tick and its life is a function of the seed and k, so that a tick's
// changes are found by looking at the orders alive then.
const (
	ticksPerSecond   = 10
	tickMs           = 1000 / ticksPerSecond
	ordersPerTick    = 2
	logisticsBaseMs  = 1767225600000 // 2026-01-01
	couriers         = 200
	lifeTicks        = 1200 // no order lives longer until it is delivered
	archiveTicks     = 6000 // after that it leaves the orders relation
	pingEvery        = 20   // ticks between the pings of a courier
	promiseTicks     = 450
	tickMicros       = tickMs * 1000
	logisticsOrders  = 0
	logisticsCourier = 1
	logisticsPings   = 2
)

var (
	zones    = []string{"north", "south", "east", "west", "harbour", "old town"}
	vehicles = []string{"bike", "scooter", "van"}
	statuses = []string{"placed", "accepted", "picked_up", "delivered", "cancelled"}
)

var logisticsTables = []sources.Table{
	logisticsOrders: {Name: "orders", Envelope: sources.EnvelopeChanges, Key: []int{0}, Columns: []sources.Column{
		col("order_id", types.Int8), col("customer_id", types.Int8), {Name: "courier_id", Type: types.Int8}, col("zone", types.Text),
		col("status", types.Text), col("amount", types.Numeric), col("placed_at", types.TimestampTZ),
		col("promised_at", types.TimestampTZ), {Name: "delivered_at", Type: types.TimestampTZ}}},
	logisticsCourier: {Name: "couriers", Envelope: sources.EnvelopeChanges, Key: []int{0}, Columns: []sources.Column{
		col("courier_id", types.Int8), col("name", types.Text), col("vehicle", types.Text), col("home_zone", types.Text)}},
	logisticsPings: {Name: "pings", Envelope: sources.EnvelopeAppend, Columns: []sources.Column{
		col("courier_id", types.Int8), col("lat", types.Float8), col("lon", types.Float8), col("at", types.TimestampTZ)}},
}

type logistics struct{ seed uint64 }

func newLogistics(seed uint64) *logistics { return &logistics{seed: seed} }

func (l *logistics) tables() []sources.Table { return logisticsTables }

// order is the whole life of order k, in ticks since the start.
type order struct {
	k                                      int64
	placed, accepted, picked, done, leaves int64
	cancelled                              bool
	customer, courier                      int64
	zone                                   int
	cents                                  int64
}

func (l *logistics) order(k int64) order {
	r := eventRNG(l.seed, k)
	o := order{k: k, placed: k / ordersPerTick}
	o.customer = 1 + r.below(5000)
	o.courier = 1 + r.below(couriers)
	o.zone = int(r.below(int64(len(zones))))
	o.cents = 500 + r.below(9500)
	o.accepted = o.placed + 5 + r.below(60)
	o.picked = o.accepted + 30 + r.below(200)
	// A tail of slow deliveries breaks the promise.
	slow := int64(0)
	if r.below(10) == 0 {
		slow = r.below(400)
	}
	o.done = min(o.picked+50+r.below(250)+slow, o.placed+lifeTicks-1)
	o.cancelled = r.below(25) == 0
	if o.cancelled {
		o.done = o.accepted
	}
	o.leaves = o.placed + archiveTicks
	return o
}

// state is the status at a tick, -1 before the order is placed and after it
// has left.
func (o *order) state(tick int64) int {
	switch {
	case tick < o.placed || tick >= o.leaves:
		return -1
	case o.cancelled && tick >= o.done:
		return 4
	case tick >= o.done:
		return 3
	case tick >= o.picked && !o.cancelled:
		return 2
	case tick >= o.accepted:
		return 1
	}
	return 0
}

func tickTime(tick int64) int64 { return micros(logisticsBaseMs) + tick*tickMicros }

func (o *order) emit(state int, b []*columnar.Builder) {
	b[0].Int64(o.k + 1)
	b[1].Int64(o.customer)
	if state == 0 || state == 4 {
		b[2].Null()
	} else {
		b[2].Int64(o.courier)
	}
	b[3].String(zones[o.zone])
	b[4].String(statuses[state])
	b[5].Extend(func(d []byte) []byte { return decimal.AppendInt64Scaled(d, o.cents, 2) })
	b[6].Int64(tickTime(o.placed))
	b[7].Int64(tickTime(o.placed + promiseTicks))
	if state == 3 {
		b[8].Int64(tickTime(o.done))
	} else {
		b[8].Null()
	}
}

func (l *logistics) generate(from, to int64) []sources.TableChunk {
	orders := builders(logisticsTables[logisticsOrders].Columns, 64)
	courier := builders(logisticsTables[logisticsCourier].Columns, couriers)
	pings := builders(logisticsTables[logisticsPings].Columns, 64)
	var diffs []int64
	for tick := from; tick < to; tick++ {
		if tick == 0 {
			l.couriers(courier)
		}
		diffs = l.changes(tick, orders, diffs)
		for c := tick%pingEvery + 1; c <= couriers; c += pingEvery {
			l.ping(c, tick, pings)
		}
	}
	var out []sources.TableChunk
	if orders[0].Len() > 0 {
		out = append(out, chunkOf(logisticsOrders, orders, diffs))
	}
	if courier[0].Len() > 0 {
		out = append(out, chunkOf(logisticsCourier, courier, nil))
	}
	return append(out, chunkOf(logisticsPings, pings, nil))
}

// changes emits, for each order whose state at tick differs from the one
// before, the old row with -1 and the new with +1.
func (l *logistics) changes(tick int64, b []*columnar.Builder, diffs []int64) []int64 {
	visit := func(lo, hi int64) {
		for k := max(lo, 0); k < hi; k++ {
			o := l.order(k)
			was, is := o.state(tick-1), o.state(tick)
			if was == is {
				continue
			}
			if was >= 0 {
				o.emit(was, b)
				diffs = append(diffs, -1)
			}
			if is >= 0 {
				o.emit(is, b)
				diffs = append(diffs, 1)
			}
		}
	}
	visit((tick-archiveTicks)*ordersPerTick, (tick-archiveTicks+1)*ordersPerTick)
	visit((tick-lifeTicks)*ordersPerTick, (tick+1)*ordersPerTick)
	return diffs
}

func (l *logistics) couriers(b []*columnar.Builder) {
	for c := int64(1); c <= couriers; c++ {
		r := eventRNG(l.seed+1, c)
		b[0].Int64(c)
		b[1].String("courier " + strconv.FormatInt(c, 10))
		b[2].String(vehicles[r.below(int64(len(vehicles)))])
		b[3].String(zones[r.below(int64(len(zones)))])
	}
}

func (l *logistics) ping(c, tick int64, b []*columnar.Builder) {
	phase := float64(c) * 0.7
	t := float64(tick) / 600
	b[0].Int64(c)
	b[1].Float64(math.Round((59.91+0.05*math.Sin(t+phase))*1e6) / 1e6)
	b[2].Float64(math.Round((10.75+0.08*math.Cos(t*1.3+phase))*1e6) / 1e6)
	b[3].Int64(tickTime(tick))
}
