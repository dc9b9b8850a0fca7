package playground

import (
	"net/http"
	"strings"
)

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
func setPageHeaders(h http.Header, nonce string, o Options) {
	ancestors := "'none'"
	if len(o.FrameAncestors) > 0 {
		ancestors = strings.Join(o.FrameAncestors, " ")
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
	if len(o.FrameAncestors) > 0 {
		// A page with Cross-Origin-Embedder-Policy could not show the playground otherwise.
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
}
