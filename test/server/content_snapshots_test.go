package server

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"gaol/rootfs"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// take takes a snapshot, which is deleted when the test ends.
func (b *box) take(t testing.TB, name string) *servertest.Response {
	t.Helper()
	res := servertest.Send(t, b.Client, "POST", b.path("snapshots"), map[string]string{"name": name})
	if res.Status == http.StatusCreated {
		t.Cleanup(func() {
			r := b.request(t, "DELETE", nil, "")
			r.URL.Path = "/v1/snapshots/" + name
			if res := servertest.Do(t, b.Client, r.WithContext(context.WithoutCancel(r.Context()))); res.Status >= 300 && res.Status != http.StatusNotFound {
				t.Errorf("deleting snapshot %s: %d %s", name, res.Status, res.Body)
			}
		})
	}
	return res
}

func (b *box) close(t testing.TB) {
	t.Helper()
	servertest.Send(t, b.Client, "DELETE", "/v1/sandboxes/"+b.id, nil).Want(t, http.StatusNoContent)
}

// snapshots lists the names of a tenant's snapshots.
func snapshots(t testing.TB, c *http.Client) (names []string) {
	t.Helper()
	res := servertest.Send(t, c, "GET", "/v1/snapshots", nil)
	res.Want(t, http.StatusOK)
	var list struct {
		Snapshots []struct {
			Name string
			Size int64
		}
	}
	res.Into(t, &list)
	for _, s := range list.Snapshots {
		names = append(names, s.Name)
	}
	return names
}

func deleteSnapshots(t testing.TB, c *http.Client) {
	t.Helper()
	for _, name := range snapshots(t, c) {
		servertest.Send(t, c, "DELETE", "/v1/snapshots/"+name, nil).Want(t, http.StatusNoContent)
	}
}

func testContentSnapshots(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.write(t, "/workspace/x", t.Name())
	taken := b.take(t, "first")
	taken.Want(t, http.StatusCreated)
	var info struct {
		Name string
		Size int64
	}
	if taken.Into(t, &info); info.Name != "first" || info.Size < int64(len(t.Name())) {
		t.Errorf("the snapshot is %s", taken.Body)
	}
	if p := b.take(t, "first").Want(t, http.StatusConflict); p.Code != "conflict" {
		t.Errorf("a second one of the name: %+v", p)
	}
	b.write(t, "/workspace/x", "changed")
	copied := newBox(t, s, alice, map[string]any{"snapshot": "first"})
	if got := copied.read(t, "/workspace/x"); got != t.Name() {
		t.Errorf("the sandbox has %q", got)
	}
	b.take(t, "other").Want(t, http.StatusCreated)
	if got := snapshots(t, b.Client); !slices.Equal(got, []string{"first", "other"}) {
		t.Errorf("the snapshots are %v", got)
	}
	if p := servertest.Send(t, b.Client, "DELETE", "/v1/snapshots/first", nil).Want(t, http.StatusConflict); p.Code != "conflict" {
		t.Errorf("deleting one in use: %+v", p)
	}
	copied.close(t)
	servertest.Send(t, b.Client, "DELETE", "/v1/snapshots/first", nil).Want(t, http.StatusNoContent)
	servertest.Send(t, b.Client, "DELETE", "/v1/snapshots/first", nil).Want(t, http.StatusNotFound)
	if got := snapshots(t, b.Client); !slices.Equal(got, []string{"other"}) {
		t.Errorf("the snapshots are %v", got)
	}
}

// Another tenant cannot list, use or delete a snapshot, by any name or id, and has its own names.
func testSnapshotsOfOtherTenant(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.write(t, "/workspace/x", t.Name())
	b.take(t, "mine").Want(t, http.StatusCreated)
	stored := storedSnapshot(t, ".mine")
	thief := newBox(t, s, bob, nil)
	if got := snapshots(t, thief.Client); len(got) > 0 {
		t.Errorf("the other tenant has %v", got)
	}
	for _, ref := range append(stored.Names, "mine", stored.ID, strings.TrimPrefix(stored.ID, "sha256:"), stored.ID[7:15]) {
		res := servertest.Send(t, thief.Client, "POST", "/v1/sandboxes", map[string]any{"snapshot": ref})
		if res.Status != http.StatusUnprocessableEntity && res.Status != http.StatusNotFound {
			t.Errorf("creating a sandbox from %s: %d %s", ref, res.Status, res.Body)
		}
		res = servertest.Send(t, thief.Client, "DELETE", "/v1/snapshots/"+ref, nil)
		if res.Status != http.StatusUnprocessableEntity && res.Status != http.StatusNotFound {
			t.Errorf("deleting %s: %d %s", ref, res.Status, res.Body)
		}
	}
	thief.take(t, "mine").Want(t, http.StatusCreated)
	servertest.Send(t, thief.Client, "DELETE", "/v1/snapshots/mine", nil).Want(t, http.StatusNoContent)
	if got := newBox(t, s, alice, map[string]any{"snapshot": "mine"}).read(t, "/workspace/x"); got != t.Name() {
		t.Errorf("the snapshot has %q", got)
	}
	for _, name := range []string{"", "A", "a/b", "..", "a:b", ".a", strings.Repeat("a", 65), "é", "a b"} {
		if p := b.take(t, name).Want(t, http.StatusUnprocessableEntity); p.Code != "invalid" {
			t.Errorf("name %q: %+v", name, p)
		}
	}
}

// storedSnapshot returns the snapshot in the store whose name ends with suffix.
func storedSnapshot(t testing.TB, suffix string) *rootfs.Image {
	t.Helper()
	store, err := rootfs.Open(os.Getenv(harness.StoreVar))
	if err != nil {
		t.Fatal(err)
	}
	if store, err = store.Snapshots(); err != nil {
		t.Fatal(err)
	}
	list, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if slices.ContainsFunc(i.Names, func(name string) bool { return strings.HasSuffix(name, suffix) }) {
			return i
		}
	}
	t.Fatalf("no snapshot *%s", suffix)
	return nil
}

func testSnapshotQuotas(t *testing.T, s *servertest.Server) {
	few, small := newBox(t, s, oneSnapshot, nil), newBox(t, s, smallSnapshots, nil)
	few.take(t, "one").Want(t, http.StatusCreated)
	second := few.take(t, "two")
	if p := second.Want(t, http.StatusTooManyRequests); p.Code != "quota" || !strings.Contains(p.Detail, "snapshots") || second.Header.Get("Retry-After") == "" {
		t.Errorf("a second one: %+v", p)
	}
	servertest.Send(t, few.Client, "DELETE", "/v1/snapshots/one", nil).Want(t, http.StatusNoContent)
	few.take(t, "two").Want(t, http.StatusCreated)

	small.write(t, "/workspace/x", strings.Repeat("x", 60_000))
	small.take(t, "a").Want(t, http.StatusCreated)
	if p := small.take(t, "b").Want(t, http.StatusRequestEntityTooLarge); p.Code != "too_large" {
		t.Errorf("more than the quota has left: %+v", p)
	}
	small.write(t, "/workspace/x", strings.Repeat("x", 40_000))
	small.take(t, "c").Want(t, http.StatusCreated)
	if got := snapshots(t, small.Client); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("the snapshots are %v", got)
	}
	small.write(t, "/workspace/x", "")
	if p := small.take(t, "d").Want(t, http.StatusTooManyRequests); p.Code != "quota" || !strings.Contains(p.Detail, "snapshotBytes") {
		t.Errorf("with the quota used up: %+v", p)
	}
}

// Requests at the same time do not exceed the quota together.
func testSnapshotsAtOnce(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, twoSnapshots, nil)
	b.write(t, "/workspace/x", t.Name())
	results := make(chan *servertest.Response)
	names := []string{"a", "a", "b", "b", "c", "c", "d", "d"}
	for _, name := range names {
		go func() { results <- b.take(t, name) }()
	}
	taken := 0
	for range names {
		switch res := <-results; res.Status {
		case http.StatusCreated:
			taken++
		case http.StatusConflict, http.StatusTooManyRequests:
		default:
			t.Errorf("%d %s", res.Status, res.Body)
		}
	}
	if got := snapshots(t, b.Client); taken != 2 || len(got) != 2 {
		t.Errorf("%d were taken; there are %v", taken, got)
	}
}
