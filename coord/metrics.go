package coord

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/storage"
)

// storageStats lists the storage's figures for streamdb_internal.storage.
func (c *Coordinator) storageStats() []stat {
	st := c.store.Stats()
	return []stat{
		{"log_bytes", st.LogBytes}, {"log_records_total", st.LogRecordsTotal}, {"log_segments", int64(st.LogSegments)},
		{"block_files", int64(st.BlockFiles)}, {"block_bytes", st.BlockBytes}, {"blocks", int64(st.Blocks)},
		{"mapped_bytes", st.MappedBytes}, {"corruptions_total", st.CorruptionsTotal},
		{"checkpoint_epoch", int64(st.CheckpointEpoch)}, {"durable_epoch", int64(c.timeline.durable.get())},
		{"generation", int64(st.Generation)},
	}
}

// clusterList is the clusters' loops at this moment, each after those that it reads.
func (c *Coordinator) clusterList() []*cluster {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]*cluster, 0, len(c.clusters))
	for _, cl := range c.clusters {
		out = append(out, cl)
	}
	slices.SortFunc(out, func(a, b *cluster) int {
		return cmp.Or(cmp.Compare(a.level, b.level), strings.Compare(a.name, b.name))
	})
	return out
}

// Ready reports whether the database answers: everything that was there at the
// start has its content again.
func (c *Coordinator) Ready() (bool, string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed.Load() {
		return false, "shutting down"
	}
	if n := len(c.hydrations); n > 0 {
		return true, "serving; some views are hydrating"
	}
	return true, "serving"
}

// collector gives the coordinator's figures to Prometheus.
type collector struct{ c *Coordinator }

// Collector is the coordinator's metrics.
func (c *Coordinator) Collector() prometheus.Collector { return collector{c} }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("streamdb_"+name, help, labels, nil)
}

var (
	descSessions     = desc("sessions", "Open client sessions.")
	descEpoch        = desc("durable_epoch_seconds", "The newest readable epoch, as Unix time.")
	descClusterEpoch = desc("cluster_epoch_seconds", "The newest epoch that a cluster has reached, as Unix time.", "cluster")
	descRows         = desc("collection_rows", "Rows of a collection.", "schema", "name", "kind")
	descUpdates      = desc("collection_updates_total", "Changes applied to a collection since the start.", "schema", "name", "kind")
	descErrors       = desc("collection_errors", "Row errors that make a view unreadable.", "schema", "name")
	descRecords      = desc("source_records_total", "Records taken from a source since the start.", "schema", "name")
	descSourceBytes  = desc("source_bytes_total", "Bytes taken from a source since the start.", "schema", "name")
	descRecordErrors = desc("source_record_errors_total", "Records of a source that could not be decoded, since the start.", "schema", "name")
	descSourceLag    = desc("source_lag", "Records (or bytes) that a source is behind; -1 if not known.", "schema", "name")
	descSourceUp     = desc("source_up", "1 while a source is not stalled or failed.", "schema", "name")
	descSinkRows     = desc("sink_rows_total", "Rows that a sink has put into its table, or taken from it, since the start.", "schema", "name", "op")
	descSinkErrors   = desc("sink_failures_total", "Deliveries of a sink that have failed, since the start.", "schema", "name")
	descSinkUp       = desc("sink_up", "1 while a sink is not stopped by an error.", "schema", "name")
	descHydrating    = desc("hydrating_views", "Views that are being hydrated.")
	descHydrations   = desc("hydrations_total", "Views whose computation from their inputs has begun since the start.")
	descLogBytes     = desc("log_bytes", "Bytes of the log not yet covered by a checkpoint.")
	descBlockBytes   = desc("block_bytes", "Bytes of state in blocks.")
	descCheckpoints  = desc("checkpoint_epoch_seconds", "The epoch of the last checkpoint, as Unix time.")
	descSync         = desc("log_sync_seconds", "Time of a sync of the log.")
)

// Describe implements prometheus.Collector.
func (x collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(x, ch) }

// Collect implements prometheus.Collector.
func (x collector) Collect(ch chan<- prometheus.Metric) {
	c := x.c
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	total := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	at := map[string]dataflow.Epoch{} // the last of a cluster's loops counts
	for _, cl := range c.clusterList() {
		if e, ok := at[cl.name]; !ok || cl.done.get() < e {
			at[cl.name] = cl.done.get()
		}
	}
	for name, e := range at {
		gauge(descClusterEpoch, float64(e)/1000, name)
	}
	gauge(descEpoch, float64(c.timeline.durable.get())/1000)
	st := c.store.Stats()
	gauge(descLogBytes, float64(st.LogBytes))
	gauge(descBlockBytes, float64(st.BlockBytes))
	gauge(descCheckpoints, float64(st.CheckpointEpoch)/1000)
	ch <- prometheus.MustNewConstHistogram(descSync, uint64(st.LogSync.Count), st.LogSync.Sum.Seconds(), buckets(st.LogSync))
	cat := c.catalog.Load()
	c.mu.RLock()
	defer c.mu.RUnlock()
	gauge(descSessions, float64(len(c.sessions)))
	gauge(descHydrating, float64(len(c.hydrations)))
	total(descHydrations, float64(c.hydrated.Load()))
	for _, o := range cat.Objects() {
		coll := c.collections[o.ID]
		if coll == nil {
			continue
		}
		gauge(descRows, float64(coll.rowCount.Load()), o.Schema, o.Name, o.Kind.String())
		total(descUpdates, float64(coll.updates.Load()), o.Schema, o.Name, o.Kind.String())
		if o.Kind == catalog.KindMaterializedView {
			gauge(descErrors, float64(coll.errCount.Load()), o.Schema, o.Name)
		}
	}
	for id, k := range c.sinks {
		o := cat.ByID(id)
		if o == nil {
			continue
		}
		total(descSinkRows, float64(k.inserted.Load()), o.Schema, o.Name, "insert")
		total(descSinkRows, float64(k.deleted.Load()), o.Schema, o.Name, "delete")
		total(descSinkErrors, float64(k.failures.Load()), o.Schema, o.Name)
		up := 1.0
		if _, err := k.status(); err != nil {
			up = 0
		}
		gauge(descSinkUp, up, o.Schema, o.Name)
	}
	for _, s := range c.sources {
		total(descRecords, float64(s.records.Load()), s.obj.Schema, s.obj.Name)
		total(descSourceBytes, float64(s.bytes.Load()), s.obj.Schema, s.obj.Name)
		total(descRecordErrors, float64(s.errCount.Load()), s.obj.Schema, s.obj.Name)
		st := s.currentStatus()
		gauge(descSourceLag, float64(st.Lag), s.obj.Schema, s.obj.Name)
		up := 1.0
		if st.State == "failed" || st.State == "stalled" {
			up = 0
		}
		gauge(descSourceUp, up, s.obj.Schema, s.obj.Name)
	}
}

// buckets makes cumulative counts by upper bound in seconds.
func buckets(l storage.Latency) map[float64]uint64 {
	out := map[float64]uint64{}
	var sum uint64
	for i, n := range l.Buckets[:storage.LatencyBuckets-1] {
		sum += uint64(n)
		if i >= 4 && i <= 24 {
			out[float64(uint64(1)<<i)/1e6] = sum
		}
	}
	return out
}
