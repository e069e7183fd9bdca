package loadgen

import (
	"strconv"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

// The tables of the auction house, by number.
const (
	auctionOrganizations = iota
	auctionUsers
	auctionAccounts
	auctionAuctions
	auctionBids
)

// What there is of each, and how an auction goes.
const (
	auctionOrgs   = 40
	auctionPeople = 200
	auctionRound  = 11 // events of an auction: itself and its bids
	auctionOpen   = 10 * time.Second
	maxBid        = 100
)

var auctionTables = []sources.Table{
	auctionOrganizations: {Name: "organizations", Envelope: sources.EnvelopeAppend, Columns: []sources.Column{col("id", types.Int8), col("name", types.Text)}},
	auctionUsers: {Name: "users", Envelope: sources.EnvelopeAppend, Columns: []sources.Column{
		col("id", types.Int8), col("org_id", types.Int8), col("name", types.Text)}},
	auctionAccounts: {Name: "accounts", Envelope: sources.EnvelopeAppend, Columns: []sources.Column{
		col("id", types.Int8), col("org_id", types.Int8), col("balance", types.Int8)}},
	auctionAuctions: {Name: "auctions", Envelope: sources.EnvelopeAppend, Columns: []sources.Column{
		col("id", types.Int8), col("seller", types.Int8), col("item", types.Text), col("end_time", types.TimestampTZ)}},
	auctionBids: {Name: "bids", Envelope: sources.EnvelopeAppend, Columns: []sources.Column{
		col("id", types.Int8), col("buyer", types.Int8), col("auction_id", types.Int8), col("amount", types.Int4), col("bid_time", types.TimestampTZ)}},
}

var auctionItems = []string{"Gift Basket", "Custom Art", "Best Pizza in Town", "City Bar Crawl", "Signed Memorabilia"}

// auction is the auction house of Materialize: its organizations, users and accounts are
// there with the first event; then auctions begin one after the other, each followed by
// its bids. Times are those at which the events are made.
type auction struct {
	seed uint64
	now  func() time.Time
}

func (a *auction) tables() []sources.Table { return auctionTables }

func (a *auction) generate(from, to int64) []sources.TableChunk {
	bs := make([][]*columnar.Builder, len(auctionTables))
	for t := range bs {
		bs[t] = builders(auctionTables[t].Columns, int(to-from))
	}
	now := a.now().UnixMicro() - unixToPG
	for n := from; n < to; n++ {
		if n == 0 {
			a.house(bs)
			continue
		}
		a.event(bs, n-1, now)
	}
	var out []sources.TableChunk
	for t := range bs {
		if bs[t][0].Len() > 0 {
			out = append(out, chunkOf(t, bs[t], nil))
		}
	}
	return out
}

// house makes the rows of what stays.
func (a *auction) house(bs [][]*columnar.Builder) {
	for i := range int64(auctionOrgs) {
		o := bs[auctionOrganizations]
		o[0].Int64(i + 1)
		o[1].String("Organization " + strconv.FormatInt(i+1, 10))
		c := bs[auctionAccounts]
		c[0].Int64(i + 1)
		c[1].Int64(i + 1)
		r := eventRNG(a.seed^1, i)
		c[2].Int64(int64(r.next() % 100_000))
	}
	for i := range int64(auctionPeople) {
		r := eventRNG(a.seed^2, i)
		u := bs[auctionUsers]
		u[0].Int64(i + 1)
		u[1].Int64(int64(r.next()%auctionOrgs) + 1)
		u[2].String(nexmarkFirst[r.next()%uint64(len(nexmarkFirst))] + " " + nexmarkLast[r.next()%uint64(len(nexmarkLast))])
	}
}

// event makes an auction or a bid.
func (a *auction) event(bs [][]*columnar.Builder, n, now int64) {
	r := eventRNG(a.seed, n)
	who := int64(r.next()%auctionPeople) + 1
	id, k := n/auctionRound+1, n%auctionRound
	if k == 0 {
		x := bs[auctionAuctions]
		x[0].Int64(id)
		x[1].Int64(who)
		x[2].String(auctionItems[r.next()%uint64(len(auctionItems))])
		x[3].Int64(now + auctionOpen.Microseconds())
		return
	}
	b := bs[auctionBids]
	b[0].Int64((id-1)*(auctionRound-1) + k)
	b[1].Int64(who)
	b[2].Int64(id)
	b[3].Int32(int32(r.next()%maxBid) + 1)
	b[4].Int64(now)
}
