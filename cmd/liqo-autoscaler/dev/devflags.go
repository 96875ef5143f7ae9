package dev

import "github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"

type devFlags struct {
	dir, config, offers, listen, temporalScript, uiPort string
	plaintext, searchAttributes                         bool
	observe                                             serve.ObserveFlags
}

// marketFile is the file in dev's directory to which dev publishes the offers.
const marketFile = "market.json"

// defaultDir is dev's default directory.
const defaultDir = ".run"

// defaultListen is the address at which the other commands expect the server.
const defaultListen = "127.0.0.1:8086"
