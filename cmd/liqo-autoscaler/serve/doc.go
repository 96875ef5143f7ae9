// Package serve implements the commands for processes that serve: the gRPC server, the worker, the discovery server.
package serve
