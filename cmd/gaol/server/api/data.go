package api

import (
	"context"
	"net/http"
	"strconv"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime/requestjson"
)

// skippedTrailer is the trailer with the number of files that could not be packed.
const skippedTrailer = "Gaol-Skipped"

// use returns the sandbox of a request about a file, after its input has been decoded. The caller calls release.
func (a *API) use(r *http.Request, in *requestjson.InFile) (ctx context.Context, sb *service.Sandbox, path string, release func(), err error) {
	if path, err = in.FilePath(); err != nil {
		return nil, nil, "", nil, service.Refuse(service.Invalid, "%w", err)
	}
	ctx, sb, release, err = a.service.Use(r.Context(), tenant.FromContext(r.Context()), in.Sandbox)
	return ctx, sb, path, release, err
}

// readFile sends a file, or a range of it.
func (a *API) readFile(w http.ResponseWriter, r *http.Request) {
	decoded, err := decode(operation.ByName("readFile"), w, r, nil)
	if err != nil {
		ProblemOf(err).Write(w)
		return
	}
	in := decoded.(*requestjson.ReadIn)
	ctx, sb, path, release, err := a.use(r, &in.InFile)
	if err != nil {
		ProblemOf(err).Write(w)
		return
	}
	defer release()
	file, info, err := sb.OpenFile(path)
	if err != nil {
		ProblemOf(err).Write(w)
		return
	}
	defer func() { _ = file.Close() }()
	w.Header().Set("Content-Type", operation.Octets)
	http.ServeContent(newDownload(ctx, w), r, "", service.ClampTime(info.ModTime()), service.Part(file, info.Size(), in.FileRead))
}

// packFolder sends an archive of a folder.
func (a *API) packFolder(w http.ResponseWriter, r *http.Request) {
	in, err := decode(operation.ByName("packFolder"), w, r, nil)
	if err != nil {
		ProblemOf(err).Write(w)
		return
	}
	ctx, sb, path, release, err := a.use(r, in.(*requestjson.InFile))
	if err != nil {
		ProblemOf(err).Write(w)
		return
	}
	defer release()
	if err := sb.CheckFolder(path); err != nil {
		ProblemOf(err).Write(w)
		return
	}
	d := newDownload(ctx, w)
	d.Header().Set("Content-Type", operation.Tar)
	d.Header().Set("Trailer", skippedTrailer)
	report, err := sb.Tar(d, path)
	if err != nil {
		panic(http.ErrAbortHandler) // so that the client sees that the archive is incomplete
	}
	d.Header().Set(skippedTrailer, strconv.Itoa(report.SkippedAll))
}

// followProcess sends the events of a process. If Last-Event-ID is the last event, the status is 204, which
// stops an EventSource.
func (a *API) followProcess(w http.ResponseWriter, r *http.Request) {
	if err := a.followEvents(w, r); err != nil {
		ProblemOf(err).Write(w)
	}
}

// followEvents returns an error if there is no response yet.
func (a *API) followEvents(w http.ResponseWriter, r *http.Request) error {
	header := map[string]string{}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		header["lastEventId"] = id
	}
	decoded, err := decode(operation.ByName("followProcess"), w, r, header)
	if err != nil {
		return err
	}
	in := decoded.(*requestjson.FollowIn)
	sb, err := a.service.Acquire(tenant.FromContext(r.Context()), in.Sandbox)
	if err != nil {
		return err
	}
	defer sb.Release()
	p, err := sb.Process(in.Process)
	if err != nil {
		return err
	}
	more, err := p.HasMore(in.After)
	if err != nil {
		return err
	}
	if !more {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	stream(r.Context(), w, 0, func(ctx context.Context, s *eventStream) error { return p.Follow(ctx, in.After, s.send) })
	return nil
}
