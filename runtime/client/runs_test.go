package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"gaol/internal/session"
	"gaol/policy"
	"gaol/runtime"
)

// recorded returns the request that a server gets from do.
func recorded(t *testing.T, do func(c *Client)) string {
	t.Helper()
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{session.Protocol}})
		if err != nil {
			return // the test's Dial fails
		}
		_ = session.NewSocket(socket, session.Client).Receive(func(f session.Frame) error {
			var m session.Request
			if err := json.Unmarshal(f.Body, &m); err != nil {
				return err
			}
			got <- m.Method + " " + string(m.Params)
			return socket.Write(r.Context(), websocket.MessageBinary, session.Append(nil, session.KindResult, f.ID, []byte(`{"key":"k","state":"queued"}`)))
		})
	}))
	t.Cleanup(server.Close)
	c, err := Dial(t.Context(), Options{Address: server.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	do(c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return <-got
}

func TestSubmitRequest(t *testing.T) {
	o := SubmitOptions{
		Key: "k", Stdin: "in",
		Run: runtime.RunOptions{
			Name: "p.mts", Format: runtime.FormatESM, Args: []string{"a"}, Env: map[string]string{"E": "1"}, Cwd: "/c", Timeout: time.Second,
			Permissions: policy.Permissions{Env: policy.Scope{Default: policy.Deny}},
		},
		Sandbox: CreateOptions{
			Image: "i", Snapshot: "s", Files: map[string][]byte{"/f": []byte("x")}, Limits: runtime.Limits{Memory: 1 << 20}, ReadOnlyRoot: true, Hostname: "h",
			Isolation: "native", HostPorts: []int{80}, BigInts: true, NodeModules: "snapshot:m", NodeModulesPath: "/m",
		},
	}
	const start = `"permissions":{"env":"deny"},"args":["a"],"env":{"E":"1"},"cwd":"/c","stdin":"in","timeoutMs":1000,`
	const tree = `"image":"i","snapshot":"s","fileBytes":{"/f":"eA=="},"limits":{"memoryBytes":1048576},"isolation":"native","readOnly":true,"hostname":"h",` +
		`"nodeModules":{"hostPath":"snapshot:m","guestPath":"/m"},"bigInts":true,"hostPorts":[80]}`
	for want, do := range map[string]func(ctx context.Context, c *Client) (*BatchRun, error){
		`submitRun {"idempotencyKey":"k","code":"c","name":"p.mts","format":"esm",` + start + tree: func(ctx context.Context, c *Client) (*BatchRun, error) { return c.Submit(ctx, "c", o) },
		`submitRun {"idempotencyKey":"k","command":"sh",` + start + tree: func(ctx context.Context, c *Client) (*BatchRun, error) {
			return c.SubmitCommand(ctx, "sh", []string{"a"}, o)
		},
		`submitRun {"format":"auto"}`:   func(ctx context.Context, c *Client) (*BatchRun, error) { return c.Submit(ctx, "", SubmitOptions{}) },
		`getBatchRun {"key":"k"}`:       func(ctx context.Context, c *Client) (*BatchRun, error) { return c.BatchRun(ctx, "k") },
		`waitBatchRun {"key":"k"}`:      func(ctx context.Context, c *Client) (*BatchRun, error) { return c.WaitBatchRun(ctx, "k") },
		`cancelBatchRun {"key":"k"}`:    func(ctx context.Context, c *Client) (*BatchRun, error) { return c.CancelBatchRun(ctx, "k") },
		`cancelBatchRun {"key":"\"/."}`: func(ctx context.Context, c *Client) (*BatchRun, error) { return c.CancelBatchRun(ctx, `"/.`) },
	} {
		got := recorded(t, func(c *Client) {
			if run, err := do(t.Context(), c); err != nil || run.Key != "k" || run.State != "queued" {
				t.Errorf("%+v, %v", run, err)
			}
		})
		if got != want {
			t.Errorf("the request is\n%s, want\n%s", got, want)
		}
	}
}

// TestSubmitUnsupported: each field of the options of runs and sandboxes is either sent or rejected.
func TestSubmitUnsupported(t *testing.T) {
	c := newFake(t, session.KindResult, `{"key":"k","state":"queued"}`)
	sent := map[string]bool{}
	for name := range strings.FieldsSeq("Run.Name Run.Format Run.Args Run.Env Run.Cwd Run.Timeout Run.Permissions Sandbox.Image Sandbox.Snapshot Sandbox.Files " +
		"Sandbox.Limits Sandbox.ReadOnlyRoot Sandbox.Hostname Sandbox.Isolation Sandbox.HostPorts Sandbox.BigInts Sandbox.NodeModules Sandbox.NodeModulesPath") {
		sent[name] = true
	}
	for _, part := range []string{"Run", "Sandbox"} {
		fields := reflect.ValueOf(SubmitOptions{}).FieldByName(part).Type()
		for i := range fields.NumField() {
			var o SubmitOptions
			name := part + "." + fields.Field(i).Name
			setAny(reflect.ValueOf(&o).Elem().FieldByName(part).Field(i))
			_, err := c.Submit(t.Context(), "", o)
			e, ok := errors.AsType[*runtime.OptionError](err)
			if rejected := ok && errors.Is(err, errors.ErrUnsupported) && e.Option == fields.Field(i).Name; rejected == sent[name] || err != nil && !rejected {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := c.Submit(t.Context(), "", SubmitOptions{Stdin: "\xff"}); err == nil || err.Error() != "gaol: submit: option Stdin: not valid UTF-8" {
		t.Errorf("input that is not UTF-8: %v", err)
	}
	if _, err := c.SubmitCommand(t.Context(), "", nil, SubmitOptions{}); err == nil {
		t.Error("a command without a name was accepted")
	}
}

// setAny sets v to another value than zero.
func setAny(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Int, reflect.Int64, reflect.Uint8:
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), nil))
	case reflect.Chan:
		v.Set(reflect.MakeChan(reflect.ChanOf(reflect.BothDir, v.Type().Elem()), 0))
	case reflect.Interface:
		v.Set(reflect.ValueOf(strings.NewReader("")))
	case reflect.Struct:
		setAny(v.Field(0))
	default:
		panic(v.Kind())
	}
}
