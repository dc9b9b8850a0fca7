package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"gaol/runtime"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := serve(ctx, *addr, runtime.Options{})
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// serve serves until ctx ends. Then it lets requests finish for 10 seconds, and closes the pool.
func serve(ctx context.Context, addr string, o runtime.Options) error {
	api, err := newAPI(o)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, Handler: api.handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Printf("listening on http://%s", addr)
	select {
	case err = <-failed:
	case <-ctx.Done():
		// ctx has ended: the shutdown needs a time limit of its own.
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = server.Shutdown(limit)
	}
	return errors.Join(err, api.close())
}
