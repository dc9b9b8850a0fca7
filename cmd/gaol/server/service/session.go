package service

// Invalidf returns an error about a request.
func Invalidf(format string, args ...any) error { return refuse(Invalid, format, args...) }

// NotFoundf returns an error about something that does not exist.
func NotFoundf(format string, args ...any) error { return refuse(NotFound, format, args...) }
