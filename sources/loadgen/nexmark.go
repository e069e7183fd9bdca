package loadgen

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/types"
)

// The proportions and ids of Nexmark (Tucker et al., NEXMark, 2002; as the
// Beam and Flink generators fix them).
const (
	nexmarkEpoch    = 50 // events an epoch: 1 person, 3 auctions, 46 bids
	nexmarkAuctions = 3
	nexmarkBaseMs   = 1436918400000
	firstID         = 1000
	firstCategory   = 10
	activePeople    = 1000
	inFlight        = 100
	idLead          = 10
	hotRatio        = 100
	channels        = 10_000

	// unixToPG is what lies between 1970 and 2000, in microseconds.
	unixToPG = 946_684_800_000_000
)

// The tables of Nexmark, by number.
const (
	nexmarkBid = iota
	nexmarkAuction
	nexmarkPerson
)

var (
	nexmarkFirst   = []string{"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"}
	nexmarkLast    = []string{"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"}
	nexmarkCities  = []string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	nexmarkStates  = []string{"AZ", "CA", "ID", "OR", "WA", "WY"}
	nexmarkHotChan = []string{"Google", "Facebook", "Baidu", "Apple"}
)

func col(name string, t types.Type) sources.Column {
	return sources.Column{Name: name, Type: t, NotNull: true}
}

var nexmarkTables = []sources.Table{
	nexmarkBid: {Name: "bid", Envelope: sources.EnvelopeAppend, Columns: []sources.Column{
		col("auction", types.Int8), col("bidder", types.Int8), col("price", types.Int8), col("channel", types.Text),
		col("url", types.Text), col("date_time", types.Timestamp), col("extra", types.Text)}},
	nexmarkAuction: {Name: "auction", Envelope: sources.EnvelopeAppend, Columns: []sources.Column{
		col("id", types.Int8), col("item_name", types.Text), col("description", types.Text), col("initial_bid", types.Int8),
		col("reserve", types.Int8), col("date_time", types.Timestamp), col("expires", types.Timestamp), col("seller", types.Int8),
		col("category", types.Int8), col("extra", types.Text)}},
	nexmarkPerson: {Name: "person", Envelope: sources.EnvelopeAppend, Columns: []sources.Column{
		col("id", types.Int8), col("name", types.Text), col("email_address", types.Text), col("credit_card", types.Text),
		col("city", types.Text), col("state", types.Text), col("date_time", types.Timestamp), col("extra", types.Text)}},
}

// nexmark is the seeded form: the integers of event n are drawn from a
// SplitMix64 of seed and n in a fixed order; strings come from another one.
type nexmark struct {
	seed      uint64
	eventRate float64 // events a second of event time
	words     *textPool
	letters   *textPool
	urls      []string // of channel c
	hotURLs   [4]string
}

func newNexmark(seed uint64) *nexmark {
	n := &nexmark{
		seed:      seed,
		eventRate: 10_000,
		words:     newTextPool(1, "abcdefghijklmnopqrstuvwxyz  "),
		letters:   newTextPool(2, "abcdefghijklmnopqrstuvwxyz"),
	}
	part := func(r *rng) string {
		return string(n.letters.cut(nil, r.next(), 3+int(r.next()%2)))
	}
	url := func(r *rng) string {
		return "https://www.nexmark.com/" + part(r) + "/" + part(r) + "/" + part(r) + "/item.htm?query=1"
	}
	r := &rng{3}
	n.urls = make([]string, channels)
	for c := range n.urls {
		n.urls[c] = url(r)
		if c%10 != 0 {
			id := int64(int32(bits.Reverse32(uint32(c))))
			n.urls[c] += "&channel_id=" + strconv.FormatInt(max(id, -id), 10)
		}
	}
	for i := range n.hotURLs {
		n.hotURLs[i] = url(r)
	}
	return n
}

func (x *nexmark) tables() []sources.Table { return nexmarkTables }

// eventMs is the event time of event n.
func (x *nexmark) eventMs(n int64) int64 {
	return nexmarkBaseMs + int64(math.Floor(float64(n)*1000/x.eventRate))
}

func (r *rng) below(k int64) int64 {
	hi, _ := bits.Mul64(r.next(), uint64(k))
	return int64(hi)
}

func (r *rng) price() int64 {
	u := float64(r.next()>>11) * 0x1p-53
	return int64(math.Round(100 * math.Pow(10, 6*u)))
}

func (r *rng) coldPerson(e int64) int64 {
	people := e + 1
	active := min(people, activePeople)
	return people - active + r.below(active+idLead)
}

func lastAuction(e, o int64) int64 {
	var a int64
	switch {
	case o == 0:
		a = nexmarkAuctions*e - 1
	case o <= nexmarkAuctions:
		a = nexmarkAuctions*e + o - 1
	default:
		a = nexmarkAuctions*e + nexmarkAuctions - 1
	}
	return max(a, 0)
}

func micros(ms int64) int64 { return ms*1000 - unixToPG }

func (x *nexmark) generate(from, to int64) []sources.TableChunk {
	n := int(to - from)
	bid := builders(nexmarkTables[nexmarkBid].Columns, n*46/50+50)
	auction := builders(nexmarkTables[nexmarkAuction].Columns, n*3/50+4)
	person := builders(nexmarkTables[nexmarkPerson].Columns, n/50+2)
	for i := from; i < to; i++ {
		e, o := i/nexmarkEpoch, i%nexmarkEpoch
		r := eventRNG(x.seed, i)
		s := rng{r.state ^ 0x5DEECE66D1CE4E5B}
		switch {
		case o == 0:
			x.person(&r, &s, e, x.eventMs(i), person)
		case o <= nexmarkAuctions:
			x.auction(&r, &s, e, lastAuction(e, o), i, auction)
		default:
			x.bid(&r, &s, e, lastAuction(e, o), x.eventMs(i), bid)
		}
	}
	var out []sources.TableChunk
	for t, bs := range [][]*columnar.Builder{nexmarkBid: bid, nexmarkAuction: auction, nexmarkPerson: person} {
		if bs[0].Len() > 0 {
			out = append(out, chunkOf(t, bs, nil))
		}
	}
	return out
}

func (x *nexmark) bid(r, s *rng, e, last, ms int64, b []*columnar.Builder) {
	var auction, bidder int64
	if r.below(2) > 0 {
		auction = last / hotRatio * hotRatio
	} else {
		lo := max(last-inFlight, 0)
		auction = lo + r.below(last-lo+1+idLead)
	}
	if r.below(4) > 0 {
		bidder = e/hotRatio*hotRatio + 1
	} else {
		bidder = r.coldPerson(e)
	}
	price := r.price()
	channel, url := "", ""
	var num [24]byte
	cold := num[:0]
	if r.below(2) > 0 {
		c := r.below(4)
		channel, url = nexmarkHotChan[c], x.hotURLs[c]
	} else {
		c := r.below(channels)
		cold = strconv.AppendInt(append(cold, "channel-"...), c, 10)
		url = x.urls[c]
	}
	b[0].Int64(auction + firstID)
	b[1].Int64(bidder + firstID)
	b[2].Int64(price)
	if channel != "" {
		b[3].String(channel)
	} else {
		b[3].Bytes(cold)
	}
	b[4].String(url)
	b[5].Int64(micros(ms))
	x.extra(s, b[6], 100-32)
}

// extra pads a record by 80 % to 120 % of what it lacks to its average size.
func (x *nexmark) extra(s *rng, b *columnar.Builder, lacking int) {
	lo := lacking * 4 / 5
	n := lo + int(s.next()%uint64(lacking*2/5+1))
	h := s.next()
	b.Extend(func(dst []byte) []byte { return x.letters.cut(dst, h, n) })
}

func (x *nexmark) auction(r, s *rng, e, id, n int64, b []*columnar.Builder) {
	ms := x.eventMs(n)
	var seller int64
	if r.below(4) > 0 {
		seller = e / hotRatio * hotRatio
	} else {
		seller = r.coldPerson(e)
	}
	category := firstCategory + r.below(5)
	initial := r.price()
	horizon := x.eventMs(n+inFlight*nexmarkEpoch/nexmarkAuctions) - ms
	length := 1 + r.below(max(2*horizon, 1))
	reserve := initial + r.price()
	b[0].Int64(id + firstID)
	x.phrase(s, b[1], 20)
	x.phrase(s, b[2], 100)
	b[3].Int64(initial)
	b[4].Int64(reserve)
	b[5].Int64(micros(ms))
	b[6].Int64(micros(ms + length))
	b[7].Int64(seller + firstID)
	b[8].Int64(category)
	x.extra(s, b[9], 500-8*8-10-50)
}

// phrase is s(k) of the definition: letters with blanks between, 3 ≤ length < k.
func (x *nexmark) phrase(s *rng, b *columnar.Builder, k int) {
	n := 3 + int(s.next()%uint64(k-3))
	h := s.next()
	b.Extend(func(dst []byte) []byte {
		at := len(dst)
		dst = x.words.cut(dst, h, n)
		// The ends are never blank, as if trimmed.
		for _, i := range []int{at, len(dst) - 1} {
			if dst[i] == ' ' {
				dst[i] = 'x'
			}
		}
		return dst
	})
}

func (x *nexmark) person(r, s *rng, e, ms int64, b []*columnar.Builder) {
	state := nexmarkStates[r.below(6)]
	city := nexmarkCities[r.below(10)]
	b[0].Int64(e + firstID)
	first, last := nexmarkFirst[s.next()%11], nexmarkLast[s.next()%9]
	b[1].Extend(func(d []byte) []byte { return append(append(append(d, first...), ' '), last...) })
	h1, h2 := s.next(), s.next()
	b[2].Extend(func(d []byte) []byte {
		d = x.letters.cut(d, h1, 3+int(h1>>40)%4)
		d = append(d, '@')
		d = x.letters.cut(d, h2, 3+int(h2>>40)%2)
		return append(d, ".com"...)
	})
	card := s.next()
	b[3].Extend(func(d []byte) []byte {
		for g := range 4 {
			if g > 0 {
				d = append(d, ' ')
			}
			v := card >> (16 * g) % 10_000
			d = append(d, byte('0'+v/1000), byte('0'+v/100%10), byte('0'+v/10%10), byte('0'+v%10))
		}
		return d
	})
	b[4].String(city)
	b[5].String(state)
	b[6].Int64(micros(ms))
	x.extra(s, b[7], 200-8-13-11-19-9-2-8)
}
