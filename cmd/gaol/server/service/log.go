package service

import (
	"context"
	"log/slog"
)

// requestKey is the context key of the id of a request.
type requestKey struct{}

// WithRequest returns a context with the id of a request, which [NewLog] adds to log lines.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// RequestOf returns the id of the request of a context, empty if it has none.
func RequestOf(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// NewLog returns a log that adds the node, unless that is empty, and the id of the request of the context, if it has one.
func NewLog(log *slog.Logger, node func() string) *slog.Logger {
	return slog.New(&logHandler{log.Handler(), node})
}

// logHandler is the handler of NewLog.
type logHandler struct {
	slog.Handler
	node func() string
}

// Handle implements [slog.Handler].
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if node := h.node(); node != "" {
		r.AddAttrs(slog.String("node", node))
	}
	if id := RequestOf(ctx); id != "" {
		r.AddAttrs(slog.String("request", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.Handler.WithAttrs(attrs), h.node}
}

// WithGroup implements [slog.Handler].
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.Handler.WithGroup(name), h.node}
}
