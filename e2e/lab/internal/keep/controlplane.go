package keep

import (
	"context"
	"path/filepath"
	"strconv"
	"time"
)

// controlPlane starts the processes of Kubernetes and returns when the API server is ready. The other processes may
// connect to the API server later.
func (c *cluster) controlPlane(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	p := c.ports
	client, peer := "http://"+loopback(p.etcd), "http://"+loopback(p.etcdPeer)
	etcd, err := c.start("etcd", c.bin("etcd"), flags("--data-dir", filepath.Join(c.Root, c.name+"-etcd"),
		"--unsafe-no-fsync", "true",
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer), nil)
	if err != nil {
		return err
	}
	audit, err := c.audit()
	if err != nil {
		return err
	}
	api, err := c.start("apiserver", c.bin("kube-apiserver"), append(audit, flags("--etcd-servers", client,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(p.api), "--advertise-address", "127.0.0.1",
		"--endpoint-reconciler-type", "none", // loopback is not a valid endpoint
		"--service-cluster-ip-range", c.serviceCIDR(),
		"--client-ca-file", c.pki.caCert, "--tls-cert-file", c.pki.serverCert, "--tls-private-key-file", c.pki.serverKey,
		"--service-account-key-file", c.pki.saPub, "--service-account-signing-key-file", c.pki.saKey,
		"--service-account-issuer", "https://kubernetes.default.svc", "--authorization-mode", "Node,RBAC",
		"--allow-privileged", "true", "--kubelet-preferred-address-types", "InternalIP", // the nodes' names are not in DNS
		"--disable-admission-plugins", "ServiceAccount", // no pod here needs a token
		"--profiling", "false")...), nil)
	if err != nil {
		return err
	}
	if err := etcd.Until(ctx, answers(p.etcd, "/health")); err != nil {
		return err
	}
	if err := api.Until(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		return c.kube.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return err
	}
	same := []string{
		"--kubeconfig", c.kubeconfig, "--authentication-kubeconfig", c.kubeconfig, "--authorization-kubeconfig", c.kubeconfig,
		"--bind-address", "127.0.0.1", "--leader-elect", "false",
	}
	if _, err := c.start("kcm", c.bin("kube-controller-manager"), flags(append(same, "--secure-port", strconv.Itoa(p.kcm),
		"--cluster-signing-cert-file", c.pki.caCert, "--cluster-signing-key-file", c.pki.caKey, "--root-ca-file",
		c.pki.caCert,
		"--service-account-private-key-file", c.pki.saKey, "--use-service-account-credentials", "false",
		"--controllers", "*,-node-ipam-controller,-cloud-node-lifecycle-controller")...), nil); err != nil {
		return err
	}
	_, err = c.start("scheduler", c.bin("kube-scheduler"),
		flags(append(same, "--secure-port", strconv.Itoa(p.scheduler))...), nil)
	return err
}
