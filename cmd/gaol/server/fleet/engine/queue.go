package engine

import (
	"context"
	"errors"
	"fmt"
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
)

func queueName(i int) string              { return fmt.Sprintf("RUNS-%d", i) }
func queueSubject(i int, n string) string { return fmt.Sprintf("runs.%d.%s", i, n) }

// prepareQueues makes the queues. A queue delivers a message until a worker acknowledges it.
func (c *Client) prepareQueues(ctx context.Context) error {
	for i := range Queues {
		_, err := c.js.Stream(ctx, queueName(i))
		if c.isMissing(err, jetstream.ErrStreamNotFound) {
			_, err = c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
				Name: queueName(i), Subjects: []string{queueSubject(i, "*")}, Retention: jetstream.WorkQueuePolicy,
				MaxBytes: maxQueued, Discard: jetstream.DiscardNew, Replicas: c.copies,
			})
		}
		if err == nil {
			if _, err = c.js.Consumer(ctx, queueName(i), workers); c.isMissing(err, jetstream.ErrConsumerNotFound) {
				_, err = c.js.CreateOrUpdateConsumer(ctx, queueName(i), jetstream.ConsumerConfig{Durable: workers, AckPolicy: jetstream.AckExplicitPolicy, AckWait: lease, MaxAckPending: -1})
			}
		}
		if err != nil {
			return fmt.Errorf("queue %d: %w", i, err)
		}
	}
	return nil
}

// Submit adds a message with a name to a queue. It returns ErrExists for a second message of that name, and ErrFull for a full
// queue.
func (c *Client) Submit(ctx context.Context, queue int, name string, data []byte) error {
	return c.operate(ctx, func(ctx context.Context) error {
		_, err := c.js.Publish(ctx, queueSubject(queue, name), data, jetstream.WithExpectLastSequencePerSubject(0))
		return err
	})
}

// Queued returns a message of a queue that no worker has acknowledged, or ErrNotFound.
func (c *Client) Queued(ctx context.Context, queue int, name string) (data []byte, err error) {
	err = c.operate(ctx, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, queueName(queue))
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

// Waiting returns how many messages of all queues no worker has taken, and how long the oldest message is in its queue, 0 if none waits.
func (c *Client) Waiting(ctx context.Context) (messages uint64, oldest time.Duration, err error) {
	err = c.operate(ctx, func(ctx context.Context) error {
		for queue := range Queues {
			s, err := c.js.Stream(ctx, queueName(queue))
			if err != nil {
				return err
			}
			w, err := s.Consumer(ctx, workers)
			if err != nil {
				return err
			}
			if n := w.CachedInfo().NumPending; n > 0 {
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
	Attempts int // how often it was delivered
	message  jetstream.Msg
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
	return &Message{m.Data(), int(meta.NumDelivered), m}, nil
}

// consumer returns the consumer of a queue, which it has looked up once.
func (c *Client) consumer(ctx context.Context, queue int) (jetstream.Consumer, error) {
	if found := c.consumers[queue].Load(); found != nil {
		return *found, nil
	}
	found, err := c.js.Consumer(ctx, queueName(queue), workers)
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
