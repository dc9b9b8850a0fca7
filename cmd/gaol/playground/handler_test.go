package playground

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

const index = `<meta name="csp-nonce" content="{{nonce}}"><p>page</p>`

// replaceFiles replaces the embedded files until the test ends.
func replaceFiles(t *testing.T, files map[string]string) {
	t.Helper()
	all := map[string]*file{}
	for name, text := range files {
		all[name] = newFile([]byte(text))
	}
	old := load
	load = func() map[string]*file { return all }
	t.Cleanup(func() { load = old })
}

// page are small files in the place of the real ones.
func page() map[string]string {
	return map[string]string{
		"/": index, "/main.js": strings.Repeat("main();\n", 100), "/style.css": "p { color: red }", embedPath: "embed()", "/licenses.txt": "MIT",
	}
}

func get(t *testing.T, path string, o []string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Serve(w, r, o)
	return w
}

func TestHas(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/main.js": true, "/style.css": true, "/embed.js": true, "/licenses.txt": true,
		"": false, "/index.html": false, "/main.js/": false, "//main.js": false, "/built/README.md": false, "/v1/run": false, "/main.jsx": false,
	} {
		if got := Has(path); got != want {
			t.Errorf("%q: %t", path, got)
		}
	}
}

var nonceForm = regexp.MustCompile(`style-src 'self' 'nonce-([A-Z2-7]{26})';`)

// The page contains the nonce of its policy, and each response a new one.
func TestIndex(t *testing.T) {
	replaceFiles(t, page())
	seen := map[string]bool{}
	for range 3 {
		resp := get(t, "/", nil)
		found := nonceForm.FindStringSubmatch(resp.Header().Get("Content-Security-Policy"))
		if found == nil {
			t.Fatalf("policy %q", resp.Header().Get("Content-Security-Policy"))
		}
		if got, want := resp.Body.String(), strings.ReplaceAll(index, nonceMark, found[1]); got != want || seen[found[1]] {
			t.Errorf("body %q, want %q", got, want)
		}
		seen[found[1]] = true
		if got := resp.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control %q", got)
		}
	}
}

func TestPageHeaders(t *testing.T) {
	replaceFiles(t, page())
	h := get(t, "/", nil).Header()
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	policy := "; " + h.Get("Content-Security-Policy") + "; "
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'",
		"frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	} {
		if !strings.Contains(policy, "; "+want+"; ") {
			t.Errorf("no %s in %q", want, policy)
		}
	}
	if got := h.Get("Permissions-Policy"); !strings.Contains(got, "camera=(), ") || !strings.HasSuffix(got, "=()") || strings.Contains(got, "clipboard") {
		t.Errorf("Permissions-Policy %q", got)
	}
}

// Pages of the named origins, and of no other, may show the page.
func TestFrameAncestors(t *testing.T) {
	replaceFiles(t, page())
	h := get(t, "/", []string{"https://a.example", "http://b.example:8080"}).Header()
	if got := h.Get("Content-Security-Policy"); !strings.Contains(got, "frame-ancestors https://a.example http://b.example:8080;") {
		t.Errorf("policy %q", got)
	}
	if h.Get("X-Frame-Options") != "" || h.Get("Cross-Origin-Resource-Policy") != "cross-origin" {
		t.Errorf("headers %v", h)
	}
}

// Browsers get a file once, compressed.
func TestFile(t *testing.T) {
	files := page()
	replaceFiles(t, files)
	tags := map[string]bool{}
	for _, encoding := range []string{"", "gzip", "br, GZIP, deflate", "gzip;q=0"} {
		resp := get(t, "/main.js", nil, "Accept-Encoding", encoding)
		var in io.Reader = resp.Body
		if zipped := resp.Header().Get("Content-Encoding") == "gzip"; zipped != (encoding == "gzip" || encoding == "br, GZIP, deflate") {
			t.Errorf("%q: Content-Encoding %q", encoding, resp.Header().Get("Content-Encoding"))
		} else if zipped {
			var err error
			if in, err = gzip.NewReader(in); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := io.ReadAll(in); err != nil || string(text) != files["/main.js"] {
			t.Errorf("%q: %q, %v", encoding, text, err)
		}
		tag := resp.Header().Get("Etag")
		tags[tag] = true
		again := get(t, "/main.js", nil, "Accept-Encoding", encoding, "If-None-Match", tag)
		if again.Code != http.StatusNotModified || again.Body.String() != "" {
			t.Errorf("%q: status %d for %s", encoding, again.Code, tag)
		}
		if resp.Header().Get("Cache-Control") != "no-cache" || resp.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: headers %v", encoding, resp.Header())
		}
	}
	if len(tags) != 2 {
		t.Errorf("%d entity tags for the two encodings", len(tags))
	}
}

func TestFileHeaders(t *testing.T) {
	replaceFiles(t, page())
	for path, want := range map[string][2]string{
		"/main.js":      {"text/javascript; charset=utf-8", "same-origin"},
		"/style.css":    {"text/css; charset=utf-8", "same-origin"},
		"/embed.js":     {"text/javascript; charset=utf-8", "cross-origin"},
		"/licenses.txt": {"text/plain; charset=utf-8", "same-origin"},
	} {
		h := get(t, path, nil).Header()
		if got := [2]string{h.Get("Content-Type"), h.Get("Cross-Origin-Resource-Policy")}; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

// The embedded page is complete, and make page has bundled it.
func TestEmbedded(t *testing.T) {
	for path := range types {
		if resp := get(t, path, nil); resp.Code != http.StatusOK || resp.Body.Len() == 0 {
			t.Errorf("%s: status %d, %d bytes", path, resp.Code, resp.Body.Len())
		}
	}
	if text := get(t, "/", nil).Body.String(); strings.Contains(text, nonceMark) || !strings.Contains(text, "csp-nonce") {
		t.Error("the page has no nonce")
	}
}
