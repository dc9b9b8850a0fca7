package playground

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// load returns the embedded files. They are compressed when the page is first used.
var load = sync.OnceValues(embedded)

// Has reports whether a path of a URL is one of the page's.
func Has(urlPath string) bool { return nameOf(urlPath) != "" }

// nameOf returns the name of the file at a path of a URL, "" if there is none.
func nameOf(urlPath string) string {
	name, rooted := strings.CutPrefix(urlPath, "/")
	switch {
	case !rooted:
		return ""
	case name == "":
		return Index
	case name != Index && slices.Contains(Files, name):
		return name
	}
	return ""
}

// Serve serves the file that the request's path names. The method is GET or HEAD. FrameAncestors are the
// origins, such as https://docs.example.com, of pages that may show the playground in a frame.
func Serve(w http.ResponseWriter, r *http.Request, frameAncestors []string) {
	files, err := load()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	switch name := nameOf(r.URL.Path); name {
	case "":
		http.NotFound(w, r)
	case Index:
		serveIndex(w, r, files[name].plain, frameAncestors)
	default:
		serveFile(w, r, name, files[name])
	}
}

// serveIndex serves the page itself, with a new nonce.
func serveIndex(w http.ResponseWriter, r *http.Request, text []byte, frameAncestors []string) {
	nonce := rand.Text()
	setPageHeaders(w.Header(), nonce, frameAncestors)
	// The nonce must not be used twice.
	w.Header().Set("Cache-Control", "no-store")
	text = bytes.ReplaceAll(text, []byte(Nonce), []byte(nonce))
	http.ServeContent(w, r, Index, time.Time{}, bytes.NewReader(text))
}

// serveFile serves a file that is the same for everyone. Browsers keep it, and ask whether it has changed.
func serveFile(w http.ResponseWriter, r *http.Request, name string, f *file) {
	h := w.Header()
	setFileHeaders(h, name)
	content, tag := f.plain, f.tag
	h.Set("Vary", "Accept-Encoding")
	// Clients that mention gzip with a quality get plain text.
	if httpguts.HeaderValuesContainsToken(r.Header.Values("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content, tag = f.gzipped, tag+"-gzip"
	}
	h.Set("Etag", `"`+tag+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

// setFileHeaders sets the headers of all files but the page itself.
func setFileHeaders(h http.Header, name string) {
	h.Set("Content-Type", types[path.Ext(name)])
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if name == Embed {
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
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
	ancestors := "'none'"
	if len(frameAncestors) > 0 {
		ancestors = strings.Join(frameAncestors, " ")
	} else {
		h.Set("X-Frame-Options", "DENY") // for old browsers; it cannot name origins
	}
	varying := []string{"style-src 'self' 'nonce-" + nonce + "'", "frame-ancestors " + ancestors}
	h.Set("Content-Type", types[".html"])
	h.Set("Content-Security-Policy", strings.Join(append(varying, policy...), "; "))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // no-referrer would also remove Origin from requests to the server
	h.Set("Permissions-Policy", strings.Join(denied, "=(), ")+"=()")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if len(frameAncestors) > 0 {
		// A page with Cross-Origin-Embedder-Policy could not show the playground otherwise.
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
}
