package pair

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// serverOf returns the address at which the consumer reaches the provider's API server: the value of the flag, or else
// the address in the provider's kubeconfig. It returns an error for an address that only this machine can reach.
func serverOf(flag, inKubeconfig string) (string, error) {
	if flag != "" {
		return flag, checkServer("--provider-server", flag)
	}
	if err := checkServer("the kubeconfig's server", inKubeconfig); err != nil {
		return "", fmt.Errorf("%w, with --provider-server", err)
	}
	if at, _ := url.Parse(inKubeconfig); onlyHere(at.Hostname()) {
		return "", fmt.Errorf("the provider's API server has the address %s in the kubeconfig, by which a pod of the "+
			"consumer reaches only itself: give the address that the consumer can reach with --provider-server (with kind: "+
			"https://CLUSTER-control-plane:6443)", inKubeconfig)
	}
	return inKubeconfig, nil
}

func checkServer(what, address string) error {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" || at.User != nil || at.RawQuery != "" {
		return fmt.Errorf("%s %.200q: give the address of the provider's API server as the consumer reaches it, "+
			"https://host:port", what, address)
	}
	return nil
}

// onlyHere reports whether a host name or address means the machine that uses it: a loopback address, an unspecified
// address, or a name of Docker Desktop.
func onlyHere(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsUnspecified()
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "kubernetes.docker.internal" ||
		host == "host.docker.internal"
}
