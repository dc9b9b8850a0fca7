// Package servers tests the host's connections to servers of guests: HTTP, WebSocket and event
// streams, hostile servers, and what ends the connections.
package servers
