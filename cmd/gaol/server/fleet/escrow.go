package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/tenant"
)

// ledger keeps the grants of tenants in the bucket QUOTA. It implements [quota.Ledger]. Grants are to a start of a node: its id, a dot,
// and the start.
type ledger struct{ *Fleet }

// Node implements [quota.Ledger]. It is empty, without grants, while other nodes may lack the record of this one.
func (l ledger) Node() string {
	m := l.Member()
	if m == nil || m.Get(l.ID()).Start != l.start {
		return ""
	}
	return l.ID() + "." + l.start
}

// Live implements [quota.Ledger].
func (l ledger) Live() int {
	return len(l.Member().Others()) + 1
}

// Change implements [quota.Ledger].
func (l ledger) Change(ctx context.Context, name string, change func(quota.Grants)) error {
	for key := l.quotaKey(name); ; {
		if lost, err := l.Member().IsLost(ctx, l.ID(), l.start); err != nil || lost {
			return cmp.Or[error](err, errNoNode)
		}
		all := quota.Grants{}
		text, revision, err := l.client.Get(ctx, engine.Quota, key)
		if err == nil {
			err = json.Unmarshal(text, &all)
		} else if errors.Is(err, engine.ErrNotFound) {
			err = nil
		}
		for node := range all {
			id, start, _ := strings.Cut(node, ".")
			lost, failed := l.Member().IsLost(ctx, id, start)
			if err = errors.Join(err, failed); lost {
				delete(all, node)
			}
		}
		if err != nil {
			return err
		}
		change(all)
		next, err := json.Marshal(all)
		if err == nil && !bytes.Equal(next, text) {
			err = l.client.Update(ctx, engine.Quota, key, next, revision)
		}
		if !errors.Is(err, engine.ErrExists) {
			return err
		}
	}
}

// quotaKey returns the key of a tenant, whose name may contain other characters than keys.
func (f *Fleet) quotaKey(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(f.NameOf(&tenant.Tenant{Name: name})))
}

// recallSubject begins the subjects of recalls, which end with the key of a tenant. Their text is the id of the node that asks.
const recallSubject = "recall."

// Recall implements [quota.Ledger].
func (l ledger) Recall(name string) {
	_ = l.client.Publish(recallSubject+l.quotaKey(name), []byte(l.ID())) // the next request recalls again
}

// shareQuotas lets the nodes share the quotas of tenants.
func (f *Fleet) shareQuotas(q *quota.Server) {
	q.Share(ledger{f})
	err := f.client.Subscribe(f.life, recallSubject+">", func(subject string, by []byte) {
		name, err := base64.RawURLEncoding.DecodeString(subject[len(recallSubject):])
		if err == nil && string(by) != f.ID() {
			f.work.Go(func() { q.Recalled(f.TenantNamed(string(name)).Name) })
		}
	})
	if err != nil {
		f.Log.Error("other nodes cannot get quotas that this one does not use", "err", err)
	}
	f.work.Go(func() { q.Keep(f.life) })
}
