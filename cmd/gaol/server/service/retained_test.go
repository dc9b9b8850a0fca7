package service

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// newRetaining returns a sandbox without a runtime.
func newRetaining(s *Service, owner string) *Sandbox {
	return &Sandbox{service: s, owner: owner, longLived: longLived{byID: map[string]entry{}}}
}

// end makes a process of a sandbox end.
func (sb *Sandbox) end(id string, bytes int) {
	p := &Process{program: program{ID: id, sandbox: sb}}
	sb.longLived.add(p)
	sb.service.retained.add(&p.program, bytes)
}

func (sb *Sandbox) kept() int {
	sb.longLived.mu.Lock()
	defer sb.longLived.mu.Unlock()
	return len(sb.longLived.byID)
}

// The entries of a tenant are bounded by number and size, and does not depend on other tenants.
func TestRetainBounds(t *testing.T) {
	s := &Service{retained: retained{byName: map[string][]*program{}}}
	a, b, other := newRetaining(s, "a"), newRetaining(s, "a"), newRetaining(s, "b")
	other.end("p", retainBytes)
	for i := range 2 * retainCount {
		[]*Sandbox{a, b}[i%2].end(fmt.Sprint(i), 1)
	}
	if a.kept()+b.kept() != retainCount || a.kept() != b.kept() {
		t.Errorf("%d and %d are kept", a.kept(), b.kept())
	}
	a.end("large", retainBytes/2)
	a.end("larger", retainBytes/2)
	if a.kept() != 2 || b.kept() != 0 {
		t.Errorf("%d and %d are kept beside large ones", a.kept(), b.kept())
	}
	a.end("largest", 2*retainBytes)
	if _, err := a.Process("largest"); a.kept() != 1 || err != nil {
		t.Errorf("%d are kept, %v", a.kept(), err)
	}
	a.end("small", 1)
	if _, err := a.Process("small"); a.kept() != 1 || err != nil {
		t.Errorf("%d are kept, %v", a.kept(), err)
	}
	if other.kept() != 1 {
		t.Error("the other tenant's is gone")
	}
	for _, sb := range []*Sandbox{a, b, other} {
		s.retained.remove(sb.owner, func(p *program) bool { return p.sandbox == sb })
		if sb.kept() != 0 {
			t.Errorf("%d are kept without a sandbox", sb.kept())
		}
	}
	if len(s.retained.byName) != 0 {
		t.Errorf("%v", s.retained.byName)
	}
}

func TestRetainTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sb := newRetaining(&Service{retained: retained{byName: map[string][]*program{}}}, "a")
		sb.end("1", 1)
		time.Sleep(retainTime / 2)
		sb.end("2", 1)
		time.Sleep(retainTime/2 + time.Second)
		synctest.Wait()
		if _, err := sb.Process("2"); sb.kept() != 1 || err != nil {
			t.Errorf("%d are kept, %v", sb.kept(), err)
		}
		time.Sleep(retainTime)
		synctest.Wait()
		if sb.kept() != 0 {
			t.Errorf("%d are kept", sb.kept())
		}
	})
}
