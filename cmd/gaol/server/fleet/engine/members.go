package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Retain removes all servers from the cluster except those with some names, which must run. The client needs [Access.System].
func (c *Client) Retain(ctx context.Context, names []string) error {
	for {
		ids, err := c.otherServers(ctx, names)
		for _, id := range ids {
			err = errors.Join(err, c.removeServer(ctx, id))
		}
		if err == nil || !Sleep(ctx, reconnectWait) {
			return err
		}
	}
}

// otherServers returns the ids of the servers of the cluster that have other names. The leader may not know the name of a server that
// does not run, so that all with these names must.
func (c *Client) otherServers(ctx context.Context, names []string) (ids []string, err error) {
	type server struct{ Name, Peer string }
	var response struct {
		Data struct {
			Meta struct {
				Leader, Peer string
				Replicas     []server
			} `json:"meta_cluster"`
		}
	}
	if err := c.manage(ctx, "$SYS.REQ.SERVER.PING.JSZ", map[string]any{"leader_only": true}, &response); err != nil {
		return nil, err
	}
	meta, found := response.Data.Meta, 0
	for _, s := range append(meta.Replicas, server{meta.Leader, meta.Peer}) {
		if slices.Contains(names, s.Name) {
			found++
		} else {
			ids = append(ids, s.Peer)
		}
	}
	if found < len(names) {
		return nil, fmt.Errorf("%w: it has %d of %d servers", ErrUnavailable, found, len(names))
	}
	return ids, nil
}

// removeServer removes a server from the cluster, which makes copies of its buckets and queues on others.
func (c *Client) removeServer(ctx context.Context, id string) error {
	var response struct{ Error *jetstream.APIError }
	if err := c.manage(ctx, "$JS.API.SERVER.REMOVE", map[string]any{"peer_id": id}, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return response.Error
	}
	return nil
}

// manage sends a request to the servers, and decodes the first response.
func (c *Client) manage(ctx context.Context, subject string, in map[string]any, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.operate(ctx, func(ctx context.Context) error {
		m, err := c.conn.RequestWithContext(ctx, subject, text)
		if err == nil {
			err = json.Unmarshal(m.Data, out)
		}
		return err
	})
}

// WaitCopies waits until the servers with some names, and no others, have current copies of all buckets and queues.
func (c *Client) WaitCopies(ctx context.Context, names []string) error {
	for _, stream := range c.streams() {
		for {
			err := c.checkCopies(ctx, stream, names)
			if err == nil {
				break
			} else if !Sleep(ctx, reconnectWait) {
				return err
			}
		}
	}
	return nil
}

// checkCopies returns an error unless the servers with some names, and no others, have current copies of a stream and its consumers.
func (c *Client) checkCopies(ctx context.Context, stream string, names []string) error {
	return c.operate(ctx, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		all := []*jetstream.ClusterInfo{s.CachedInfo().Cluster}
		consumers := s.ListConsumers(ctx)
		for consumer := range consumers.Info() {
			if consumer.Config.Durable != "" {
				all = append(all, consumer.Cluster)
			}
		}
		for _, info := range all {
			if !hasCopies(info, names) {
				return fmt.Errorf("%s has other copies: %+v", stream, info)
			}
		}
		return consumers.Err()
	})
}

// hasCopies reports whether the servers with some names, and no others, have current copies.
func hasCopies(info *jetstream.ClusterInfo, names []string) bool {
	if info == nil || len(info.Replicas)+1 != len(names) || !slices.Contains(names, info.Leader) {
		return false
	}
	return !slices.ContainsFunc(info.Replicas, func(r *jetstream.PeerInfo) bool { return !r.Current || !slices.Contains(names, r.Name) })
}
