package kafka

import (
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// problem is a kind of trouble; each has its own cause and ends by itself.
type problem uint8

const (
	problemSession problem = iota // the session with the cluster could not be begun, or broke
	problemBroker                 // a broker cannot be reached
	problemFetch                  // a partition cannot be fetched
	problemSchema                 // a schema cannot be fetched
	problems
)

// health makes the source's status of what its parts report.
type health struct {
	feed sources.Feed

	mu    sync.Mutex
	state string // what it is without problems
	err   [problems]error
	lag   int64
	known bool // lag is
	last  sources.Status
}

// set reports a problem, or with nil that it is over.
func (h *health) set(p problem, err error) {
	h.mu.Lock()
	h.err[p] = err
	h.publish()
	h.mu.Unlock()
}

func (h *health) setState(state string) {
	h.mu.Lock()
	h.state = state
	h.publish()
	h.mu.Unlock()
}

func (h *health) setLag(lag int64) {
	h.mu.Lock()
	h.lag, h.known = lag, true
	h.publish()
	h.mu.Unlock()
}

// publish gives the feed a status that differs from the last one.
func (h *health) publish() {
	st := sources.Status{State: h.state, Lag: -1}
	if h.known {
		st.Lag = h.lag
	}
	for _, err := range h.err {
		if err != nil {
			st.State, st.Error = "stalled", err.Error()
			break
		}
	}
	if st == h.last {
		return
	}
	h.last = st
	st.Updated = time.Now()
	h.feed.SetStatus(st)
}

// topicError is the user's error of a topic that cannot be read.
func topicError(topic string, err error) error {
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return pgerror.New(pgerror.UndefinedObject, "topic \"%s\" does not exist", topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return pgerror.New(pgerror.InsufficientPrivilege, "not allowed to read topic \"%s\"", topic)
	case errors.Is(err, kerr.InvalidTopicException):
		return pgerror.New(pgerror.InvalidName, "\"%s\" is no valid name of a topic", topic)
	}
	return pgerror.New(pgerror.ConnectionFailure, "topic \"%s\": %s", topic, err)
}

func isGone(err error) bool { return errors.Is(err, kerr.GroupIDNotFound) }
