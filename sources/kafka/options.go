package kafka

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// startMode is where a new source begins.
type startMode uint8

const (
	startEarliest startMode = iota
	startLatest
	startOffsets
	startTimestamp
)

// options are what a source was declared with.
type options struct {
	conn     connOptions
	topic    string
	group    string
	ownGroup bool // group is this source's alone
	start    startMode
	offsets  []int64       // of startOffsets, by partition
	since    int64         // of startTimestamp: milliseconds since 1970, or before now if negative
	refresh  time.Duration // how often partitions and lag are looked up
	envelope string        // "none" or "upsert"
	includes []include
	rising   bool // declared in RisingWave's form
	key, val formatOptions
}

// include is one INCLUDE clause.
type include struct {
	kind, header, alias string
	bytes               bool
}

// formatOptions say how keys or values are written.
type formatOptions struct {
	kind     string // "" if not said
	registry registryOptions
	schema   string // given in the statement
	bare     bool   // records of such a schema have no header with a schema id
	columns  int    // of CSV
	names    []string
	delim    string
	times    string // what a number means as a timestamp
	strategy string // how the registry names subjects
	message  string // the record's name, for such strategies
}

// defaultRefresh is how often the cluster is asked for new partitions.
const defaultRefresh = 5 * time.Second

// withoutEffect are options of other systems and of the Java and C clients that
// have no counterpart here and change no result.
var withoutEffect = map[string]bool{
	"progress topic": true, "progress topic replication factor": true, "size": true, "snapshot": true,
	"transactional id prefix": true, "properties.enable.auto.commit": true, "properties.sync.call.timeout": true,
	"properties.statistics.interval.ms": true, "properties.auto.offset.reset": true, "properties.session.timeout.ms": true,
	"properties.socket.keepalive.enable": true, "properties.retry.backoff.ms": true, "properties.request.timeout.ms": true,
	"properties.metadata.max.age.ms": true, "properties.message.max.bytes": true, "properties.receive.message.max.bytes": true,
	"properties.queued.min.messages": true, "properties.queued.max.messages.kbytes": true, "properties.check.crcs": true,
	"format.map.handling.mode": true, "source_rate_limit": true, "backfill_rate_limit": true, "exactly once": true,
}

// optionReader takes options out of a map; what is left at the end is unknown.
type optionReader struct {
	left map[string]string
	err  error
}

func (r *optionReader) take(names ...string) string {
	v := ""
	for _, n := range names {
		if x, ok := r.left[n]; ok {
			if v == "" {
				v = x
			}
			delete(r.left, n)
		}
	}
	return v
}

func (r *optionReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = pgerror.New(pgerror.InvalidParameterValue, format, args...)
	}
}

// parseOptions reads a declaration. The keys are those that the coordinator
// makes of all spellings (coord/ddlsource.go).
func parseOptions(cfg *sources.Config) (*options, error) {
	r := &optionReader{left: map[string]string{}}
	for k, v := range cfg.Options {
		if k != "connector" && k != "upstream" && k != "role" && !withoutEffect[k] && !strings.HasPrefix(k, "props.") {
			r.left[k] = v
		}
	}
	o := &options{conn: r.connection(), topic: r.take("topic"), refresh: defaultRefresh, rising: r.take("dialect") == "risingwave"}
	if o.topic == "" {
		r.fail("a Kafka source needs a TOPIC")
	}
	r.groupOption(o, cfg)
	r.startOptions(o)
	if v := r.take("topic metadata refresh interval"); v != "" {
		if d, err := time.ParseDuration(strings.ReplaceAll(v, " ", "")); err == nil && d >= 10*time.Millisecond {
			o.refresh = d
		} else {
			r.fail("invalid TOPIC METADATA REFRESH INTERVAL \"%s\": a duration such as '30s' is wanted", v)
		}
	}
	switch v := strings.ToLower(r.take("envelope")); v {
	case "", "none", "append":
		o.envelope = "none"
	case "upsert":
		o.envelope = v
	default:
		return nil, pgerror.Unsupported("ENVELOPE " + strings.ToUpper(v))
	}
	o.includes = r.includeOptions()
	o.key, o.val = r.format("key."), r.format("")
	if r.err == nil {
		r.err = r.unknown()
	}
	return o, r.err
}

func (r *optionReader) unknown() error {
	if len(r.left) == 0 {
		return nil
	}
	names := make([]string, 0, len(r.left))
	for k := range r.left {
		names = append(names, k)
	}
	sort.Strings(names)
	name := names[0]
	for _, p := range []string{"key.", "registry.", "format."} {
		name = strings.TrimPrefix(name, p)
	}
	return pgerror.New(pgerror.InvalidParameterValue, "unknown option \"%s\" of a Kafka source", name).
		WithHint("The options are BROKER, TOPIC, SECURITY PROTOCOL, SASL MECHANISMS, SASL USERNAME, SASL PASSWORD, SSL CERTIFICATE AUTHORITY, SSL CERTIFICATE, SSL KEY, CLIENT ID, GROUP ID, GROUP ID PREFIX, START OFFSET, START TIMESTAMP and TOPIC METADATA REFRESH INTERVAL.")
}

func (r *optionReader) groupOption(o *options, cfg *sources.Config) {
	prefix := r.take("group id prefix", "progress group id prefix")
	o.group = r.take("group id")
	if o.group == "" {
		o.group, o.ownGroup = fmt.Sprintf("%sstreamdb-%d", prefix, cfg.ID), true
	}
}

func (r *optionReader) startOptions(o *options) {
	mode, offsets, since := strings.ToLower(r.take("start mode")), r.take("start offset"), r.take("start timestamp")
	switch mode {
	case "", "earliest":
	case "latest":
		o.start = startLatest
	case "timestamp":
		if since == "" {
			r.fail("start mode timestamp needs a start timestamp in milliseconds")
		}
	default:
		r.fail("unknown start mode \"%s\": earliest, latest or timestamp is wanted", mode)
	}
	if offsets != "" {
		if since != "" {
			r.fail("START OFFSET and START TIMESTAMP cannot both be given")
		}
		o.start = startOffsets
		for _, s := range strings.Split(offsets, ",") {
			n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
			if err != nil || n < 0 {
				r.fail("invalid START OFFSET \"%s\": a list of an offset for each partition is wanted", offsets)
				return
			}
			o.offsets = append(o.offsets, n)
		}
	}
	if since != "" {
		o.start = startTimestamp
		var err error
		if o.since, err = strconv.ParseInt(since, 10, 64); err != nil {
			r.fail("invalid START TIMESTAMP \"%s\": milliseconds since 1970 are wanted, or a negative number of them before now", since)
		}
	}
}

var includeKinds = map[string]bool{"key": true, "partition": true, "offset": true, "timestamp": true, "headers": true, "header": true, "topic": true}

func (r *optionReader) includeOptions() []include {
	var out []include
	text := r.take("include")
	if text == "" {
		return nil
	}
	for _, line := range strings.Split(text, "\n") {
		f := append(strings.Split(line, "\t"), "", "", "")
		inc := include{kind: f[0], header: f[1], alias: f[2], bytes: f[3] == "bytes"}
		if inc.kind == "header" && inc.header == "" {
			inc.kind = "headers"
		}
		if !includeKinds[inc.kind] {
			r.fail("INCLUDE %s means nothing to a Kafka source: KEY, PARTITION, OFFSET, TIMESTAMP, HEADERS, HEADER 'name' and TOPIC do", strings.ToUpper(inc.kind))
		}
		out = append(out, inc)
	}
	return out
}

// format reads how keys (prefix "key.") or values are written.
func (r *optionReader) format(prefix string) formatOptions {
	p := prefix + "format."
	f := formatOptions{kind: strings.ToLower(r.take(prefix + "format")), schema: r.take(p + "schema"), delim: r.take(p + "delimiter")}
	switch v := strings.ToLower(r.take(prefix+"registry.confluent wire format", prefix+"registry.confluent_wire_format")); v {
	case "", "true":
	case "false":
		f.bare = true
	default:
		r.fail("CONFLUENT WIRE FORMAT is true or false, not \"%s\"", v)
	}
	f.registry = r.registry(prefix + "registry.")
	f.message = r.take(p+"message", p+"key.message")
	f.strategy = r.take(p + "schema.registry.name.strategy")
	f.times = r.take(p+"timestamptz.handling.mode", p+"timestamp.handling.mode")
	if v := r.take(p + "columns"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 1600 {
			r.fail("invalid number of CSV columns \"%s\"", v)
		}
		f.columns = n
	}
	header, names := r.take(p+"header"), r.take(p+"header names")
	if names != "" {
		f.names = strings.Split(names, ",")
	} else if header == "true" {
		r.fail("a Kafka record is one line of CSV and has no header: give the columns' names, or their number")
	}
	if len(f.delim) > 1 {
		r.fail("a CSV delimiter is one character")
	}
	switch f.kind {
	case "", "avro", "json", "text", "bytes", "csv":
	default:
		if r.err == nil {
			r.err = pgerror.Unsupported("FORMAT " + strings.ToUpper(f.kind))
		}
	}
	switch f.strategy {
	case "", "topic_name_strategy", "record_name_strategy", "topic_record_name_strategy":
	default:
		r.fail("unknown schema registry name strategy \"%s\"", f.strategy)
	}
	return f
}
