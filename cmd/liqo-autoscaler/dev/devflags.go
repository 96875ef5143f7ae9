package dev

import "github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"

type devFlags struct {
	dir, config, offers, listen, temporalScript, uiPort string
	plaintext, searchAttributes                         bool
	observe                                             serve.ObserveFlags
}

// marketFile is where dev publishes the offers, in its directory.
const marketFile = "market.json"

// defaultDir is that directory.
const defaultDir = ".run"

// defaultListen is where the other commands look for the server.
const defaultListen = "127.0.0.1:8086"
