package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path"

	"gaol/runtime"
)

//go:embed plugins/*.js
var sources embed.FS

type order struct {
	Number   int     `json:"number"`
	Customer string  `json:"customer"`
	Total    float64 `json:"total"`
}

var orders = []order{{1, "ada", 80}, {2, "ada", 200}}

func main() {
	if err := run(context.Background(), os.Stdout, runtime.Options{}); err != nil {
		log.Fatal(err)
	}
}

// run loads all plugins and passes each order to each of them.
func run(ctx context.Context, out io.Writer, o runtime.Options) (err error) {
	plugins, err := loadAll(ctx, o)
	defer func() {
		for _, p := range plugins {
			err = errors.Join(err, p.close())
		}
	}()
	if err != nil {
		return err
	}
	for _, order := range orders {
		for _, p := range plugins {
			text, err := p.handle(ctx, order)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "order %d: %s: %s\n", order.Number, p.name, text)
		}
	}
	return nil
}

// loadAll returns the plugins that were loaded beside an error, so that the caller closes them.
func loadAll(ctx context.Context, o runtime.Options) ([]*plugin, error) {
	names, err := fs.Glob(sources, "plugins/*.js")
	if err != nil {
		return nil, err
	}
	var plugins []*plugin
	for _, name := range names {
		code, err := sources.ReadFile(name)
		if err != nil {
			return plugins, err
		}
		p, err := load(ctx, path.Base(name), string(code), o)
		if err != nil {
			return plugins, err
		}
		plugins = append(plugins, p)
	}
	return plugins, nil
}
