package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/settings"
	"gaol/test/server/servertest"
)

// The tenants. Some have separate quotas.
var (
	alice          = servertest.User{UID: 61701, GID: 61701}
	bob            = servertest.User{UID: 61702, GID: 61702}
	uploader       = servertest.User{UID: 61703, GID: 61703}
	single         = servertest.User{UID: 61704, GID: 61704}
	oneSnapshot    = servertest.User{UID: 61705, GID: 61705}
	twoSnapshots   = servertest.User{UID: 61706, GID: 61706}
	smallSnapshots = servertest.User{UID: 61707, GID: 61707}

	quotas = map[string]quota.Limits{
		"uid:61703": {Upload: maxUpload}, "uid:61704": {Connections: 1},
		"uid:61705": {Snapshots: 1}, "uid:61706": {Snapshots: 2}, "uid:61707": {SnapshotBytes: 100_000},
	}
)

const maxUpload = 1 << 20

// TestContent tests one server, whose zygotes stay warm.
func TestContent(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Tokens: newTokens(t), Settings: func(o *settings.Settings) {
		o.Tenants, o.PreviewHost = quotas, "preview.example"
		o.Server.Requests, o.Tenant.Requests = 1e6, 1e6
	}})
	for _, user := range []servertest.User{alice, bob, oneSnapshot, twoSnapshots, smallSnapshots} {
		deleteSnapshots(t, s.Client(t, user)) // of a test that was killed
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, *servertest.Server)
	}{
		{"FileContent", testFileContent},
		{"FileOperations", testFileOperations},
		{"FileErrors", testContentErrors},
		{"FilesOfOtherTenant", testFilesOfOtherTenant},
		{"NamesThatAreNotText", testNamesThatAreNotText},
		{"UploadLimits", testUploadLimits},
		{"UploadThatEndsEarly", testUploadThatEndsEarly},
		{"Archives", testArchives},
		{"HostileArchives", testHostileArchives},
		{"ArchiveOfClosedSandbox", testArchiveOfClosedSandbox},
		{"TimesBeyondText", testTimesBeyondText},
		{"ListingOfManyFiles", testListingOfManyFiles},
		{"LinksStayInside", testLinksStayInside},
		{"FilesWhileGuestRacesServer", testFilesWhileGuestRacesServer},
		{"EndlessFile", testEndlessFile},
		{"Snapshots", testContentSnapshots},
		{"SnapshotsOfOtherTenant", testSnapshotsOfOtherTenant},
		{"SnapshotQuotas", testSnapshotQuotas},
		{"SnapshotsAtOnce", testSnapshotsAtOnce},
		{"Listeners", testContentListeners},
		{"PortRequests", testPortRequests},
		{"HostileReplies", testHostileReplies},
		{"ForgedErrors", testForgedErrors},
		{"Redirects", testRedirects},
		{"WebSocket", testWebSocket},
		{"EventStream", testEventStream},
		{"SilentServer", testSilentServer},
		{"PagesOfOthers", testPagesOfOthers},
		{"Preview", testPreview},
		{"PreviewReplies", testPreviewReplies},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
}

// box is a sandbox of a tenant on a server.
type box struct {
	*http.Client
	server *servertest.Server
	id     string
}

// newBox creates a sandbox of a user, whose guests may listen on localhost.
func newBox(t testing.TB, s *servertest.Server, user servertest.User, fields map[string]any) *box {
	t.Helper()
	return newBoxOf(t, s, s.Client(t, user), fields)
}

func newBoxOf(t testing.TB, s *servertest.Server, client *http.Client, fields map[string]any) *box {
	t.Helper()
	request := map[string]any{"permissions": json.RawMessage(`{"network":{"rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]}]}}`)}
	for name, value := range fields {
		request[name] = value
	}
	res := servertest.Send(t, client, "POST", "/v1/sandboxes", request)
	res.Want(t, http.StatusCreated)
	b := &box{Client: client, server: s}
	var created struct{ ID string }
	res.Into(t, &created)
	b.id = created.ID
	t.Cleanup(b.delete)
	return b
}

// delete deletes the sandbox, unless it has been deleted or the server has been stopped.
func (b *box) delete() {
	r, err := http.NewRequestWithContext(context.Background(), "DELETE", "http://gaol/v1/sandboxes/"+b.id, nil)
	if err != nil {
		panic(err) // the method and URL are valid
	}
	if res, err := b.Do(r); err == nil {
		_ = res.Body.Close()
	}
}

// path returns the path of an operation in the sandbox.
func (b *box) path(operation string, query ...string) string {
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	text := "/v1/sandboxes/" + b.id + "/" + operation
	if len(values) > 0 {
		text += "?" + values.Encode()
	}
	return text
}

// send sends a request without a body about the sandbox.
func (b *box) send(t testing.TB, method, operation string, query ...string) *servertest.Response {
	t.Helper()
	return servertest.Send(t, b.Client, method, b.path(operation, query...), nil)
}

// put sends a body.
func (b *box) put(t testing.TB, body io.Reader, operation string, query ...string) *servertest.Response {
	t.Helper()
	return servertest.Do(t, b.Client, b.request(t, "PUT", body, operation, query...))
}

// request returns a request with a body.
func (b *box) request(t testing.TB, method string, body io.Reader, operation string, query ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://gaol"+b.path(operation, query...), body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	return r
}

// write writes a file.
func (b *box) write(t testing.TB, path, text string) {
	t.Helper()
	b.put(t, bytes.NewReader([]byte(text)), "files", "path", path).Want(t, http.StatusOK)
}

// read reads a file.
func (b *box) read(t testing.TB, path string) string {
	t.Helper()
	res := b.send(t, "GET", "files", "path", path)
	res.Want(t, http.StatusOK)
	return string(res.Body)
}

// run runs a program and returns its output.
func (b *box) run(t testing.TB, code string) string {
	t.Helper()
	res := servertest.Send(t, b.Client, "POST", b.path("run"), map[string]any{"code": code, "timeoutMs": 300_000})
	res.Want(t, http.StatusOK)
	var out struct {
		Stdout, Stderr string
		ExitCode       int
	}
	res.Into(t, &out)
	if out.ExitCode != 0 {
		t.Fatalf("exit code %d: %s", out.ExitCode, out.Stderr)
	}
	return out.Stdout
}

// start starts a program that runs until the test ends, and waits until it listens on a port.
func (b *box) start(t testing.TB, port int, code string) {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() {
		text, err := json.Marshal(map[string]any{"code": code, "timeoutMs": 600_000})
		if err != nil {
			t.Error(err)
			return
		}
		r := b.request(t, "POST", bytes.NewReader(text), "run").WithContext(context.WithoutCancel(t.Context()))
		r.Header.Set("Content-Type", "application/json")
		res, err := b.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		if body, _ := io.ReadAll(res.Body); t.Failed() {
			t.Logf("the guest's program: %s", body)
		}
	})
	t.Cleanup(func() {
		b.delete()
		running.Wait()
	})
	res := servertest.Send(t, b.Client, "POST", b.path(fmt.Sprintf("listeners/%d/wait", port)), map[string]any{"timeoutMs": 300_000})
	res.Want(t, http.StatusOK)
	var state struct{ Listening bool }
	if res.Into(t, &state); !state.Listening {
		t.Fatal("the guest does not listen")
	}
}
