package playground

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// types are the media types of all files of the page, by their path in URLs. Package mime's depend on the machine.
var types = map[string]string{
	"/":             "text/html; charset=utf-8",
	"/main.js":      "text/javascript; charset=utf-8",
	"/style.css":    "text/css; charset=utf-8",
	embedPath:       "text/javascript; charset=utf-8",
	"/licenses.txt": "text/plain; charset=utf-8",
}

// embedPath is the path of the script that other sites load.
const embedPath = "/embed.js"

// nonceMark is replaced in the page by the nonce of the response's Content-Security-Policy.
const nonceMark = "{{nonce}}"

// folder contains the page, and the files that make page generates from page/src.
//
//go:embed page/index.html built
var folder embed.FS

// file is a file of the page.
type file struct {
	plain, gzipped []byte
	tag            string // identifies the content
}

// load returns the embedded files by their path in URLs. They are compressed when the page is first used.
var load = sync.OnceValue(func() map[string]*file {
	files := map[string]*file{}
	for urlPath := range types {
		name := "built" + urlPath
		if urlPath == "/" {
			name = "page/index.html"
		}
		text, err := folder.ReadFile(name)
		if err != nil {
			panic(err) // the binary is incomplete
		}
		files[urlPath] = newFile(text)
	}
	return files
})

func newFile(text []byte) *file {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(text) // a buffer does not fail
	_ = w.Close()
	sum := sha256.Sum256(text)
	return &file{text, zipped.Bytes(), hex.EncodeToString(sum[:16])}
}

// Has reports whether a path of a URL is one of the page's.
func Has(urlPath string) bool { return types[urlPath] != "" }

// Serve serves the file at the request's path, which the page has. The method is GET or HEAD. FrameAncestors are the
// origins, such as https://docs.example.com, of pages that may show the playground in a frame.
func Serve(w http.ResponseWriter, r *http.Request, frameAncestors []string) {
	f := load()[r.URL.Path]
	if r.URL.Path == "/" {
		nonce := rand.Text() // it must not be used twice
		setPageHeaders(w.Header(), nonce, frameAncestors)
		w.Header().Set("Cache-Control", "no-store")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(bytes.ReplaceAll(f.plain, []byte(nonceMark), []byte(nonce))))
		return
	}
	serveFile(w, r, f)
}

// serveFile serves a file that is the same for everyone. Browsers keep it, and ask whether it has changed.
func serveFile(w http.ResponseWriter, r *http.Request, f *file) {
	h := w.Header()
	h.Set("Content-Type", types[r.URL.Path])
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.URL.Path == embedPath {
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	content, tag := f.plain, f.tag
	h.Set("Vary", "Accept-Encoding")
	// Clients that mention gzip with a quality get plain text.
	if httpguts.HeaderValuesContainsToken(r.Header.Values("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content, tag = f.gzipped, tag+"-gzip"
	}
	h.Set("Etag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// policy is the page's Content-Security-Policy, without what differs between responses. The editor makes
// style elements, which need the nonce. Trusted Types forbid innerHTML and the like.
var policy = []string{
	"default-src 'none'",
	"script-src 'self'",
	"connect-src 'self'",
	"img-src 'self' data:",
	"base-uri 'none'",
	"form-action 'none'",
	"require-trusted-types-for 'script'",
	"trusted-types 'none'",
}

// denied are the browser's features that the page does without.
var denied = []string{
	"accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "fullscreen", "geolocation", "gyroscope", "hid", "identity-credentials-get",
	"idle-detection", "local-fonts", "magnetometer", "microphone", "midi", "payment", "picture-in-picture", "publickey-credentials-create",
	"publickey-credentials-get", "screen-wake-lock", "serial", "storage-access", "usb", "web-share", "window-management", "xr-spatial-tracking",
}

// setPageHeaders sets the headers of the page itself.
func setPageHeaders(h http.Header, nonce string, frameAncestors []string) {
	ancestors, resources := "'none'", "same-origin"
	if len(frameAncestors) > 0 {
		// A page with Cross-Origin-Embedder-Policy could not show the playground otherwise.
		ancestors, resources = strings.Join(frameAncestors, " "), "cross-origin"
	} else {
		h.Set("X-Frame-Options", "DENY") // for old browsers; it cannot name origins
	}
	varying := []string{"style-src 'self' 'nonce-" + nonce + "'", "frame-ancestors " + ancestors}
	h.Set("Content-Type", types["/"])
	h.Set("Content-Security-Policy", strings.Join(append(varying, policy...), "; "))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // no-referrer would also remove Origin from requests to the server
	h.Set("Permissions-Policy", strings.Join(denied, "=(), ")+"=()")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", resources)
}
