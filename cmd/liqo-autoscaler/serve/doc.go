// Package serve is the processes that serve: the gRPC server, the worker, the discovery server.
package serve
