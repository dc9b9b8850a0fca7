package session

import (
	"net/http"
	"slices"
	"strings"
)

// websocketHeader reports whether a header lists a token.
func websocketHeader(h http.Header, name, token string) bool {
	list := strings.Split(strings.Join(h.Values(name), ","), ",")
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), token) })
}
