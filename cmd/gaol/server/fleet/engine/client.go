package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gaol/cmd/gaol/server/service"
)

// Client is the connection of a node to the engine. It connects again when it is lost.
type Client struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	copies int // see [Access]

	generation atomic.Pointer[string]
	failures   atomic.Int32 // of Put, since the last success

	consumers [Queues]atomic.Pointer[jetstream.Consumer]
	refused   sync.Map // owners of messages to which checkShare has returned ErrShare a moment ago
}

// Buckets of records.
const (
	Nodes   = "NODES"   // node.<id>, and dead.<id>
	Config  = "CONFIG"  // join.<hash of a secret>, and canary.<id> of a node
	Moved   = "MOVED"   // the id of a sandbox: the node that it has moved to
	Quota   = "QUOTA"   // a tenant: the parts of its limits that nodes may use
	Results = "RESULTS" // <name> of a message of a queue: its result, which lives for ResultLife

	Names    = "NAMES"    // see [service.Peers]: the snapshots of tenants
	Refusals = "REFUSALS" // <queue>.<sequence> of a message: how often it was refused, see [Message.Refuse]
)

// ResultLife is how long a result is kept.
const ResultLife = time.Hour

// movedLife is how long a sandbox is known to have moved, longer than sandboxes live, and a key to be deleted, for nodes that are away.
const movedLife = 90 * 24 * time.Hour

// maxResults bounds the results in bytes.
const maxResults = 6 << 30

// buckets are all buckets. A hint with the subject done.<name> follows the creation of a result.
var buckets = []jetstream.KeyValueConfig{
	{Bucket: Nodes, LimitMarkerTTL: markerLife}, {Bucket: Config, LimitMarkerTTL: markerLife}, {Bucket: Moved, TTL: movedLife}, {Bucket: Quota},
	{Bucket: Names, LimitMarkerTTL: movedLife},
	{Bucket: Refusals, TTL: 24 * time.Hour}, // since the last one
	{
		Bucket: Results, TTL: ResultLife, MaxBytes: maxResults,
		RePublish: &jetstream.RePublish{Source: "$KV." + Results + ".>", Destination: "done.>", HeadersOnly: true},
	},
}

// ErrExists is the error of Create for a key that exists.
var ErrExists = fmt.Errorf("the key exists: %w", fs.ErrExist)

// Errors for clients of the server: of a queue or a bucket without room, and of an operation for which the engine could not be
// reached, which may have had an effect.
var (
	ErrShare       error = &service.Error{Code: service.Exceeded, Err: errors.New("many of your batch runs wait, and the queue is needed for others"), RetryAfter: 10 * time.Second}
	ErrFull        error = &service.Error{Code: service.Exceeded, Err: errors.New("the queue of batch runs is full"), RetryAfter: 10 * time.Second}
	ErrUnavailable error = &service.Error{Code: service.EngineUnavailable, Err: errors.New("the engine cannot be reached now"), RetryAfter: time.Second}
)

// ErrNotFound is the error of Get for a key that does not exist.
var ErrNotFound = errors.New("the key does not exist")

const (
	operationTimeout = 5 * time.Second // of an operation without a deadline of its context
	reconnectWait    = 300 * time.Millisecond
	pingEvery        = 2 * time.Second // of an idle connection; it is lost after two without a reply
	markerLife       = time.Hour       // of the marker that a key has expired
)

// dialer makes connections to the engine, without TLS of NATS: see package fleet.
type dialer func(context.Context) (net.Conn, error)

// Dial implements [nats.CustomDialer].
func (d dialer) Dial(string, string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	return d(ctx)
}

// Access holds the credentials for an engine.
type Access struct {
	Secret     string
	Generation string // of the engine's servers and queues; empty: the first one
	Copies     int    // of new buckets and queues; 0: one, and Prepare updates existing buckets and queues
	System     bool   // manage the servers, and have no records
}

// Users of servers. They have one password. The other servers of a cluster are users, too.
const (
	recordUser = "gaol"
	systemUser = "system"
)

// Token returns the token that servers of a generation expect: others refuse it.
func (a Access) Token() string { return a.Secret + a.Generation }

// Connect returns a client with connections from dial. It does not wait for the first one. The caller closes it.
func Connect(dial func(context.Context) (net.Conn, error), access Access, name string, log *slog.Logger) (*Client, error) {
	c := &Client{copies: access.Copies}
	c.generation.Store(&access.Generation)
	user := func() (name, password string) {
		password = Access{Secret: access.Secret, Generation: *c.generation.Load()}.Token()
		return map[bool]string{false: recordUser, true: systemUser}[access.System], password
	}
	// The dialer does not use the URL.
	return c.connect("nats://127.0.0.1:4222", name, log, nats.SetCustomDialer(dialer(dial)), nats.UserInfoHandler(user))
}

// connect connects a new client, and returns it.
func (c *Client) connect(urls, name string, log *slog.Logger, options ...nats.Option) (*Client, error) {
	conn, err := nats.Connect(urls, append(options,
		nats.Name(name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.IgnoreDiscoveredServers(), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // what cannot be sent is an error
		nats.PingInterval(pingEvery), nats.Timeout(operationTimeout),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("the connection to the fleet's engine is lost", "err", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("connected to the fleet's engine again") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("the fleet's engine", "err", err) }),
	)...)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(operationTimeout))
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.conn, c.js = conn, js
	return c, nil
}

// Use makes the client use the engine of another generation.
func (c *Client) Use(generation string) {
	c.generation.Store(&generation)
	for i := range c.consumers {
		c.consumers[i].Store(nil)
	}
	c.reconnect()
}

// reconnect makes a new connection.
func (c *Client) reconnect() { _ = c.conn.ForceReconnect() } // it may be closed

// Close ends the connection.
func (c *Client) Close() { c.conn.Close() }

// Connected reports whether there is a connection now.
func (c *Client) Connected() bool { return c.conn.IsConnected() }

// Prepare makes the buckets and queues that are missing. Machines that use the engine of another machine do not call it.
func (c *Client) Prepare(ctx context.Context) error {
	if !c.Connected() {
		return errors.Join(ErrUnavailable, c.conn.LastError())
	}
	if c.conn.MaxPayload() < maxPayload {
		return errors.New("the engine accepts only small messages: set max_payload: 8MB in the configuration of its servers")
	}
	for _, bucket := range buckets {
		bucket.History, bucket.Replicas = 1, c.copies
		_, err := c.js.KeyValue(ctx, bucket.Bucket)
		if c.isMissing(err, jetstream.ErrBucketNotFound) {
			_, err = c.js.CreateOrUpdateKeyValue(ctx, bucket)
		}
		if err == nil && c.copies > 1 {
			err = c.readFromLeader(ctx, "KV_"+bucket.Bucket)
		}
		if err != nil {
			return fmt.Errorf("bucket %s: %w", bucket.Bucket, err)
		}
	}
	return c.prepareQueues(ctx)
}

// isMissing reports whether a bucket, queue or consumer with an error of its look-up has to be created. Several servers update none: that
// takes long, and a stream that gets more copies than before can lose its leader for ever.
func (c *Client) isMissing(err, notFound error) bool {
	return c.copies == 0 || errors.Is(err, notFound)
}

// readFromLeader makes the leader of a stream answer reads. Another server with a copy may not have the last records yet.
func (c *Client) readFromLeader(ctx context.Context, stream string) error {
	s, err := c.js.Stream(ctx, stream)
	if err != nil || !s.CachedInfo().Config.AllowDirect {
		return err
	}
	config := s.CachedInfo().Config
	config.AllowDirect = false
	_, err = c.js.UpdateStream(ctx, config)
	return err
}

// with calls do with a bucket, and converts its error.
func (c *Client) with(ctx context.Context, bucket string, do func(context.Context, jetstream.KeyValue) error) error {
	return c.operate(ctx, func(ctx context.Context) error {
		kv, err := c.js.KeyValue(ctx, bucket)
		if err == nil {
			err = do(ctx, kv)
		}
		return err
	})
}

// operate calls do with a time limit, and converts its error.
func (c *Client) operate(ctx context.Context, do func(context.Context) error) error {
	if !c.Connected() {
		return ErrUnavailable
	}
	limited, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	err := do(limited)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var code jetstream.ErrorCode
	if e, ok := errors.AsType[jetstream.JetStreamError](err); ok && e.APIError() != nil {
		code = e.APIError().ErrorCode
	}
	switch {
	case err == nil, errors.Is(err, ErrShare):
		return err
	case errors.Is(err, jetstream.ErrKeyExists), code == jetstream.JSErrCodeStreamWrongLastSequence:
		return ErrExists
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrMsgNotFound):
		return ErrNotFound
	case code == storeFailed:
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// storeFailed is the server's code for a message for which a stream lacks room.
const storeFailed = 10077

// Create creates a key, which is deleted after a time; 0: that of the bucket. It returns ErrExists if it exists.
func (c *Client) Create(ctx context.Context, bucket, key string, value []byte, life time.Duration) error {
	var o []jetstream.KVCreateOpt
	if life > 0 {
		o = append(o, jetstream.KeyTTL(life))
	}
	return c.with(ctx, bucket, func(ctx context.Context, kv jetstream.KeyValue) error {
		_, err := kv.Create(ctx, key, value, o...)
		return err
	})
}

// maxFailures is how many times in succession Put may fail before the client tries another server, which may have a majority.
const maxFailures = 2

// Put sets the value of a key.
func (c *Client) Put(ctx context.Context, bucket, key string, value []byte) error {
	err := c.with(ctx, bucket, func(ctx context.Context, kv jetstream.KeyValue) error {
		_, err := kv.Put(ctx, key, value)
		return err
	})
	if err == nil || !c.Connected() {
		c.failures.Store(0)
	} else if c.failures.Add(1) >= maxFailures {
		c.failures.Store(0)
		c.reconnect()
	}
	return err
}

// Get returns the value of a key with its revision, for Update. It returns ErrNotFound if there is none.
func (c *Client) Get(ctx context.Context, bucket, key string) (value []byte, revision uint64, err error) {
	err = c.with(ctx, bucket, func(ctx context.Context, kv jetstream.KeyValue) error {
		entry, err := kv.Get(ctx, key)
		if err == nil {
			value, revision = entry.Value(), entry.Revision()
		}
		return err
	})
	return value, revision, err
}

// Update replaces a revision of a key, 0: none. It returns ErrExists if the key has another one.
func (c *Client) Update(ctx context.Context, bucket, key string, value []byte, revision uint64) error {
	return c.with(ctx, bucket, func(ctx context.Context, kv jetstream.KeyValue) error {
		_, err := kv.Update(ctx, key, value, revision)
		return err
	})
}

// Delete deletes a key, also if it does not exist.
func (c *Client) Delete(ctx context.Context, bucket, key string) error {
	return c.with(ctx, bucket, func(ctx context.Context, kv jetstream.KeyValue) error {
		return kv.Purge(ctx, key, jetstream.PurgeTTL(movedLife))
	})
}

// Change is a new value of a key.
type Change struct {
	Key   string
	Value []byte // nil: the key was deleted
}

// Watch calls changed with all keys of a bucket, and then with each change, until ctx ends. It calls current when changed has got all
// keys. When a lost connection has been made again, it begins again with all keys: NATS itself would notice only after ten seconds or
// more that nothing arrives. The error is [ErrUnavailable] if a watch cannot begin.
func (c *Client) Watch(ctx context.Context, bucket string, changed func(Change), current func()) error {
	states := c.conn.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.conn.RemoveStatusListener(states)
	for {
		if err := c.watch(ctx, bucket, states, changed, current); err != nil {
			return err
		}
	}
}

// watch is Watch until the state of the connection changes.
func (c *Client) watch(ctx context.Context, bucket string, states <-chan nats.Status, changed func(Change), current func()) error {
	w, stop, err := c.watcher(ctx, bucket)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case state := <-states:
			if state == nats.CLOSED {
				return ErrUnavailable
			}
			return nil
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return ErrUnavailable
			case e == nil:
				current()
			case e.Operation() == jetstream.KeyValuePut:
				changed(Change{e.Key(), e.Value()})
			default:
				changed(Change{e.Key(), nil})
			}
		}
	}
}

// watcher starts to watch a bucket. The caller calls stop.
func (c *Client) watcher(ctx context.Context, bucket string) (_ jetstream.KeyWatcher, stop func(), err error) {
	kv, err := c.js.KeyValue(ctx, bucket)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(operationTimeout, cancel) // of the start only: the watcher keeps ctx
	w, err := kv.WatchAll(ctx)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	late.Stop() // if that is too late, the watcher has ended
	return w, func() {
		cancel()
		_ = w.Stop()            // the connection may be closed
		for range w.Updates() { // else its goroutine would wait for a reader
		}
	}, nil
}

// Leader returns the name of the server that leads a bucket, an empty text if it is unknown.
func (c *Client) Leader(ctx context.Context, bucket string) string {
	s, err := c.js.Stream(ctx, "KV_"+bucket)
	if err != nil || s.CachedInfo().Cluster == nil {
		return ""
	}
	return s.CachedInfo().Cluster.Leader
}

// Sleep waits for a time, or until ctx ends. It reports whether ctx has not ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Publish sends a hint to the nodes that are connected now.
func (c *Client) Publish(subject string, hint []byte) error { return c.conn.Publish(subject, hint) }

// Ask sends a question to one subscriber of a subject, and returns the answer. Without a subscriber it returns ErrNotFound.
func (c *Client) Ask(ctx context.Context, subject string) (answer []byte, err error) {
	err = c.operate(ctx, func(ctx context.Context) error {
		m, err := c.conn.RequestWithContext(ctx, subject, nil)
		if errors.Is(err, nats.ErrNoResponders) {
			return jetstream.ErrKeyNotFound
		}
		if err == nil {
			answer = m.Data
		}
		return err
	})
	return answer, err
}

// Answer answers questions about a subject until ctx ends.
func (c *Client) Answer(ctx context.Context, subject string, answer func() []byte) error {
	return c.subscribe(ctx, subject, func(m *nats.Msg) { _ = m.Respond(answer()) }) // the connection may be lost
}

// Subscribe calls receive with each hint until ctx ends. Subjects may have wildcards.
func (c *Client) Subscribe(ctx context.Context, subject string, receive func(subject string, hint []byte)) error {
	return c.subscribe(ctx, subject, func(m *nats.Msg) { receive(strings.Clone(m.Subject), m.Data) })
}

func (c *Client) subscribe(ctx context.Context, subject string, receive nats.MsgHandler) error {
	s, err := c.conn.Subscribe(subject, receive)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	context.AfterFunc(ctx, func() { _ = s.Unsubscribe() }) // the client may be closed
	return nil
}
