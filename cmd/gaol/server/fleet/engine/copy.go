package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// copiesAtOnce bounds the messages that [Client.Copy] writes at the same time, each of which waits for a majority of the servers.
const copiesAtOnce = 32

// Copy copies all records and messages of another engine, to which no other client writes meanwhile. Records with a lifetime keep the rest of it. The
// lifetime that a bucket gives to its records begins again.
func (c *Client) Copy(ctx context.Context, from *Client) error {
	writes, ctx := errgroup.WithContext(ctx)
	writes.SetLimit(copiesAtOnce)
	for _, name := range from.streams() {
		err := from.each(ctx, name, func(m *nats.Msg) {
			writes.Go(func() error { return c.copy(ctx, m) })
		})
		if err != nil {
			return errors.Join(err, writes.Wait())
		}
	}
	return writes.Wait()
}

// streams returns the names of the queues, and then of the buckets: without its result a message would be delivered again.
func (c *Client) streams() (names []string) {
	for i := range Queues {
		names = append(names, c.queueName(i))
	}
	for _, bucket := range buckets {
		names = append(names, "KV_"+bucket.Bucket)
	}
	return names
}

// copy stores a message. It tries again while the servers elect a leader.
func (c *Client) copy(ctx context.Context, m *nats.Msg) error {
	for {
		err := c.operate(ctx, func(ctx context.Context) error {
			_, err := c.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(0))
			return err
		})
		switch {
		case errors.Is(err, ErrExists): // by an attempt whose response was lost
			return nil
		case !errors.Is(err, ErrUnavailable), !Sleep(ctx, reconnectWait):
			return err
		}
	}
}

// operationHeader is the header of the marker of a deleted key.
const operationHeader = "KV-Operation"

// each calls do with copies of the messages of a stream. It skips markers of keys that have expired, and of deleted keys unless they have
// a lifetime, for nodes that are away.
func (c *Client) each(ctx context.Context, stream string, do func(*nats.Msg)) error {
	s, err := c.js.Stream(ctx, stream)
	for seq := uint64(1); err == nil; seq++ {
		var m *jetstream.RawStreamMsg
		if m, err = s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(">")); err != nil {
			break
		}
		seq = m.Sequence
		message := nats.NewMsg(m.Subject)
		message.Data = m.Data
		life := m.Header.Get(jetstream.MsgTTLHeader)
		if life != "" {
			left, invalid := time.ParseDuration(life)
			if left -= time.Since(m.Time); invalid != nil || left < time.Second {
				continue // it expires now
			}
			message.Header.Set(jetstream.MsgTTLHeader, left.Truncate(time.Second).String())
		}
		operation := m.Header.Get(operationHeader)
		if operation != "" {
			message.Header.Set(operationHeader, operation)
		}
		if m.Header.Get(jetstream.MarkerReasonHeader) == "" && (operation == "" || life != "") {
			do(message)
		}
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}
