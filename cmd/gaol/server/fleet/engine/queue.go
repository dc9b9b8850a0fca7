package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Queues is the number of queues. A flood in one does not delay the others.
const Queues = 16

const (
	workers   = "workers"        // the consumer of each queue
	lease     = 10 * time.Second // of a message, unless [Message.Renew] is called
	takeWait  = 5 * time.Second  // for a message
	maxQueued = 512 << 20        // bytes of one queue
	fewQueued = 8                // messages that an owner may add to a queue of which a quarter is full
)

// queueName returns the stream of a queue. The name contains the generation, so that a late acknowledgment, which names its stream, cannot
// acknowledge a message of the next generation.
func (c *Client) queueName(i int) string {
	if generation := *c.generation.Load(); generation != "" {
		return fmt.Sprintf("RUNS-%s-%d", generation, i)
	}
	return fmt.Sprintf("RUNS-%d", i)
}

func queueSubject(i int, n string) string { return fmt.Sprintf("runs.%d.%s", i, n) }

// prepareQueues makes the queues. A queue delivers a message until a worker acknowledges it.
func (c *Client) prepareQueues(ctx context.Context) error {
	for i := range Queues {
		_, err := c.js.Stream(ctx, c.queueName(i))
		if c.isMissing(err, jetstream.ErrStreamNotFound) {
			_, err = c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
				Name: c.queueName(i), Subjects: []string{queueSubject(i, ">")}, Retention: jetstream.WorkQueuePolicy,
				MaxBytes: maxQueued, Discard: jetstream.DiscardNew, Replicas: c.copies,
			})
		}
		if err == nil {
			if _, err = c.js.Consumer(ctx, c.queueName(i), workers); c.isMissing(err, jetstream.ErrConsumerNotFound) {
				_, err = c.js.CreateOrUpdateConsumer(ctx, c.queueName(i), jetstream.ConsumerConfig{Durable: workers, AckPolicy: jetstream.AckExplicitPolicy, AckWait: lease, MaxAckPending: -1})
			}
		}
		if err != nil {
			return fmt.Errorf("queue %d: %w", i, err)
		}
	}
	return nil
}

// Submit adds a message with a name, which begins with its owner and a dot, to a queue. It returns ErrExists for a second message of
// that name, ErrShare if the owner has many and a quarter of the queue is full, and ErrFull for a full queue.
func (c *Client) Submit(ctx context.Context, queue int, name string, data []byte) error {
	owner, _, _ := strings.Cut(name, ".")
	if _, refused := c.refused.Load(owner); refused {
		return ErrShare
	}
	return c.operate(ctx, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, c.queueName(queue))
		if err == nil && s.CachedInfo().State.Bytes > uint64(s.CachedInfo().Config.MaxBytes/4) {
			err = c.checkShare(ctx, queue, owner)
		}
		if err == nil {
			_, err = c.js.Publish(ctx, queueSubject(queue, name), data, jetstream.WithExpectLastSequencePerSubject(0))
		}
		return err
	})
}

// checkShare returns ErrShare if an owner has many messages in a queue. Counting them takes the engine some time: an owner that is
// refused waits for a second.
func (c *Client) checkShare(ctx context.Context, queue int, owner string) error {
	var queued struct{ Total int }
	request := fmt.Sprintf(`{"subjects_filter": %q, "offset": 1000000000}`, queueSubject(queue, owner+".*")) // without their names
	m, err := c.conn.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+c.queueName(queue), []byte(request))
	if err == nil {
		err = json.Unmarshal(m.Data, &queued)
	}
	if err == nil && queued.Total >= fewQueued {
		c.refused.Store(owner, true)
		time.AfterFunc(time.Second, func() { c.refused.Delete(owner) })
		return ErrShare
	}
	return err
}

// Queued returns a message of a queue that no worker has acknowledged, or ErrNotFound.
func (c *Client) Queued(ctx context.Context, queue int, name string) (data []byte, err error) {
	err = c.operate(ctx, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, c.queueName(queue))
		if err != nil {
			return err
		}
		m, err := s.GetLastMsgForSubject(ctx, queueSubject(queue, name))
		if err == nil {
			data = m.Data
		}
		return err
	})
	return data, err
}

// Waiting returns how many messages of all queues wait for a worker, and how long the oldest message is in its queue, 0 if none waits.
func (c *Client) Waiting(ctx context.Context) (messages uint64, oldest time.Duration, err error) {
	err = c.operate(ctx, func(ctx context.Context) error {
		for queue := range Queues {
			s, err := c.js.Stream(ctx, c.queueName(queue))
			if err != nil {
				return err
			}
			w, err := s.Consumer(ctx, workers)
			if err != nil {
				return err
			}
			if n := w.CachedInfo().NumPending + uint64(w.CachedInfo().NumRedelivered); n > 0 { // most of the latter were returned
				messages += n
				oldest = max(oldest, time.Since(s.CachedInfo().State.FirstTime))
			}
		}
		return nil
	})
	return messages, oldest, err
}

// Message is a message that a worker has taken.
type Message struct {
	Data     []byte
	Attempts int // how often it was delivered, without the times after which it was refused
	message  jetstream.Msg
	refuse   func(context.Context) error // counts a refusal
}

// Take waits for a message of a queue for some seconds. It returns nil if there is none.
func (c *Client) Take(ctx context.Context, queue int) (*Message, error) {
	if !c.Connected() {
		return nil, ErrUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, takeWait)
	defer cancel()
	var m jetstream.Msg
	consumer, err := c.consumer(ctx, queue)
	if err == nil {
		m, err = consumer.Next(jetstream.FetchContext(ctx))
	}
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, nats.ErrTimeout), errors.Is(err, jetstream.ErrNoMessages):
		return nil, nil // a message that has just arrived is delivered again
	default:
		c.consumers[queue].Store(nil)
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	refusals, key := 0, fmt.Sprintf("%s.%d", meta.Stream, meta.Sequence.Stream)
	if meta.NumDelivered > 1 {
		text, _, err := c.Get(context.WithoutCancel(ctx), Refusals, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, errors.Join(err, m.NakWithDelay(reconnectWait))
		}
		refusals, _ = strconv.Atoi(string(text)) // empty: none
	}
	return &Message{m.Data(), int(meta.NumDelivered) - refusals, m, func(ctx context.Context) error {
		return c.Put(ctx, Refusals, key, []byte(strconv.Itoa(refusals+1)))
	}}, nil
}

// consumer returns the consumer of a queue, which it has looked up once.
func (c *Client) consumer(ctx context.Context, queue int) (jetstream.Consumer, error) {
	if found := c.consumers[queue].Load(); found != nil {
		return *found, nil
	}
	found, err := c.js.Consumer(ctx, c.queueName(queue), workers)
	if err == nil {
		c.consumers[queue].Store(&found)
	}
	return found, err
}

// Renew renews the lease of a message: other workers do not get it for another ten seconds.
func (m *Message) Renew() error { return m.message.InProgress() }

// Done deletes a message.
func (m *Message) Done(ctx context.Context) error { return m.message.DoubleAck(ctx) }

// Return lets a worker take the message after some time.
func (m *Message) Return(after time.Duration) error { return m.message.NakWithDelay(after) }

// Refuse is Return for a message that no worker has tried to process: the delivery does not count as an attempt.
func (m *Message) Refuse(ctx context.Context, after time.Duration) error {
	return errors.Join(m.refuse(ctx), m.Return(after))
}
