package api

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
)

// FuzzRedirect checks that no Location of a guest leads a client out of the path of its port.
func FuzzRedirect(f *testing.F) {
	for _, location := range []string{
		"/x", "../../x", "/%2e%2e/x", `\..\..\x`, "//gaol/x", "http://localhost:3000/../x", "http:x", "?q", "#f", "/.%2e/%2e%2e%2f..%5c..", "/a;/..;/", "/.\t./x",
	} {
		f.Add(location)
	}
	const prefix = "/v1/sandboxes/sb-x/ports/3000"
	o := &apiOrigin{3000, portTarget{"sb-x", "3000", prefix, "/dir/page"}}
	asked := &http.Request{URL: &url.URL{Scheme: "http", Host: "localhost:3000", Path: "/dir/page"}}
	f.Fuzz(func(t *testing.T, location string) {
		h := http.Header{"Location": {location}}
		o.restrict(h, asked)
		got := h.Get("Location")
		if got == "" {
			return
		}
		// As browsers resolve it: escaped dots are dots, and backslashes are slashes.
		client := strings.NewReplacer("%2e", ".", "%2E", ".", `\`, "/", "\t", "", "\n", "", "\r", "").Replace(got)
		to, err := url.Parse(client)
		if err != nil {
			t.Fatalf("%q became %q: %v", location, got, err)
		}
		if clean := path.Clean(to.Path); to.Host != "" || to.Scheme != "" || clean != prefix && !strings.HasPrefix(clean, prefix+"/") {
			t.Errorf("%q became %q", location, got)
		}
	})
}
