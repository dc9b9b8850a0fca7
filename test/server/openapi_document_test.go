package server

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	validation "github.com/pb33f/libopenapi-validator/errors"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/server/servertest"
)

// document returns the server's OpenAPI document and a validator for it.
func document(t testing.TB, c *http.Client) ([]byte, validator.Validator) {
	t.Helper()
	res := servertest.Send(t, c, http.MethodGet, "/openapi.json", nil)
	doc, err := libopenapi.NewDocument(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	t.Cleanup(v.Release)
	return res.Body, v
}

// validated is a transport that validates responses, and the requests that are answered with success.
type validated struct {
	t         testing.TB
	next      http.RoundTripper
	validator validator.Validator
}

func (v *validated) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.ContentLength > 0 {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	res, err := v.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	_ = res.Body.Close()
	asked := r.Clone(r.Context())
	asked.Body = io.NopCloser(bytes.NewReader(body))
	res.Body = io.NopCloser(bytes.NewReader(text))
	if ok, errs := v.validator.ValidateHttpResponse(asked, res); !ok {
		v.t.Errorf("%s %s: the response %d is not as documented:\n%s\n%.1000s", r.Method, r.URL, res.StatusCode, describe(errs), text)
	}
	asked.Body = io.NopCloser(bytes.NewReader(body))
	// Huma takes null for an omitted field, and the validator cannot decode the value of a global that exceeds a float64.
	if res.StatusCode < 300 && !bytes.Contains(body, []byte("null")) && !bytes.Contains(body, []byte(hugeNumber)) {
		if ok, errs := v.validator.ValidateHttpRequest(asked); !ok {
			v.t.Errorf("%s %s: the server accepted a request that is not as documented:\n%s\n%.1000s", r.Method, r.URL, describe(errs), body)
		}
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	return res, nil
}

func describe(errs []*validation.ValidationError) string {
	var lines []string
	for _, e := range errs {
		lines = append(lines, e.Error())
		for _, s := range e.SchemaValidationErrors {
			lines = append(lines, "  "+s.FieldPath+": "+s.Reason)
		}
	}
	return strings.Join(lines, "\n")
}

// documentClient starts a server and returns a client of it that validates all that it does, and the
// server's document and log.
func documentClient(t testing.TB) (c *http.Client, text []byte, log *servertest.Log) {
	t.Helper()
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.Tenant.Requests, o.Server.Requests = 1e6, 1e6 }})
	c = s.Client(t, servertest.User{})
	text, v := document(t, c)
	return &http.Client{Transport: &validated{t, c.Transport, v}}, text, s.Log
}

func TestDocument(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	text, v := document(t, s.Client(t, servertest.User{}))
	if path := os.Getenv("GAOL_TEST_OPENAPI"); path != "" { // for make openapi
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if ok, errs := v.ValidateDocument(); !ok {
		t.Error(describe(errs))
	}
}

// Clients that are generated from the document need not expect null for a list: none is documented so, and responses
// are as documented. Requests may send null for a list that they can omit.
func TestArraysAreNotNullable(t *testing.T) {
	c, text, _ := documentClient(t)
	if bytes.Contains(text, []byte(`["array","null"]`)) {
		t.Error("an array is nullable")
	}
	servertest.Send(t, c, http.MethodPost, "/v1/run", `{"code": "1", "args": null, "hostPorts": null, "mounts": null}`).Want(t, http.StatusOK)
	servertest.Send(t, c, http.MethodPost, "/v1/evaluate", `{"code": "1"}`).Want(t, http.StatusOK)
	servertest.Send(t, c, http.MethodPost, "/api/sandbox", `{"source": ""}`).Want(t, http.StatusOK)
	servertest.Send(t, c, http.MethodGet, "/v1/snapshots", nil).Want(t, http.StatusOK)
	servertest.Send(t, c, http.MethodGet, "/v1/sandboxes", nil).Want(t, http.StatusOK)
	var sandbox, open struct{ ID string }
	servertest.Send(t, c, http.MethodPost, "/v1/sandboxes", `{}`).Into(t, &sandbox)
	at := "/v1/sandboxes/" + sandbox.ID
	for _, list := range []string{"processes", "contexts", "listeners"} {
		servertest.Send(t, c, http.MethodGet, at+"/"+list, nil).Want(t, http.StatusOK)
	}
	servertest.Send(t, c, http.MethodGet, at+"/files/list?path=/workspace", nil).Want(t, http.StatusOK)
	servertest.Send(t, c, http.MethodPost, at+"/contexts", `{}`).Into(t, &open)
	servertest.Send(t, c, http.MethodPost, at+"/contexts/"+open.ID+"/complete", `{"line": "("}`).Want(t, http.StatusOK)
}

// Large integers in globals are an error of the request, or exact.
func TestLargeIntegers(t *testing.T) {
	c, _, _ := documentClient(t)
	res := servertest.Send(t, c, http.MethodPost, "/v1/evaluate", `{"code": "user.ids", "globals": {"user": {"ids": [1, 9007199254740993]}}}`)
	if res.Want(t, http.StatusUnprocessableEntity); !bytes.Contains(res.Body, []byte("user.ids[1]: a JavaScript number cannot hold the integer 9007199254740993")) {
		t.Errorf("%s", res.Body)
	}
	res = servertest.Send(t, c, http.MethodPost, "/v1/evaluate", `{"code": "user.ids.concat(2n ** 60n, typeof user.ids[1])", "globals": {"user": {"ids": [1, 9007199254740993]}}, "bigInts": true}`)
	if res.Want(t, http.StatusOK); !bytes.Contains(res.Body, []byte(`"value":[1,9007199254740993,1152921504606846976,"bigint"]`)) {
		t.Errorf("%s", res.Body)
	}
}
