// Package audit writes a server's audit log: one line of JSON for each request of a tenant.
//
//	request ── NewContext ──> Record ── Of(ctx).SetCode, SetEnd, ... ── End ──> Log.Write: one line
//	              └── Begin ──> Record of one of its actions ── the same
//
// The service completes the record of the request that it serves. A line contains the SHA-256 of code, not
// the code itself, and no values of variables, arguments, input, output or tokens. Denials and
// permissions are the exceptions that come from the tenant or its guest: they name files and hosts,
// and have a bounded length.
//
// The file is opened for appending, so that logrotate can rename it; a reload of the server opens its path
// again. A log that cannot be written does not stop the server: Write returns an error, and the
// lines are lost.
package audit
