package microvm

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// requestTimeout is the timeout of one request to a host or to the consumer.
const requestTimeout = 10 * time.Second

// access is the document to which credentials refer. Each verb reads the document again. No error or log contains its
// content.
type access struct {
	// URL is the address of the host: https, or http for a host on this machine.
	URL   string `json:"url"`
	Token string `json:"token"`
	// CAData contains the authorities for the host's certificate, in PEM; empty means the system's authorities.
	CAData string `json:"caData,omitempty"`
	// HostGroup is the provider's id: a DNS-1123 label, unique among all hosts.
	HostGroup string `json:"hostGroup"`
	// Overhead plus the shape is the size of a machine. It covers the resources that the Node cannot give to pods.
	Overhead corev1.ResourceList `json:"overhead,omitempty"`
	// UserData is the boot configuration of a machine: a Go template with the function join and the fields .Name, .Labels
	// and .Taints. The last two are lists in the form of the kubelet's flags.
	UserData string `json:"userData"`
}

// open reads credentials and the document to which they refer.
func (b *Backend) open(ctx context.Context, credentials fleet.Credentials) (*host, error) {
	where, document := "", []byte(nil)
	switch ref := credentials.SecretRef; {
	case credentials.KubeconfigFile != "" && ref == nil:
		content, err := os.ReadFile(credentials.KubeconfigFile)
		if err != nil {
			return nil, errorf(backend.ErrInvalid, "credentials: %v", err)
		}
		where, document = credentials.KubeconfigFile, content
	case credentials.KubeconfigFile == "" && ref != nil:
		var secret corev1.Secret
		err := b.local.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		where, document = "Secret "+ref.Namespace+"/"+ref.Name+" key "+ref.Key, secret.Data[ref.Key]
	default:
		return nil, errorf(backend.ErrInvalid, "credentials need exactly one of kubeconfigFile and secretRef")
	}
	var a access
	if strictyaml.CheckAliases(document) != nil || yaml.UnmarshalStrict(document, &a) != nil {
		return nil, errorf(backend.ErrInvalid, "%s cannot be read as the access to a host", where)
	}
	h, wrong := a.host()
	if wrong != "" {
		return nil, errorf(backend.ErrInvalid, "%s: %s", where, wrong)
	}
	return h, nil
}

// address returns the parsed URL of the host. If the URL has a fault, the result wrong describes it.
func (a access) address() (at *url.URL, wrong string) {
	at, err := url.Parse(a.URL)
	switch {
	case err != nil || at.Host == "" || at.User != nil || at.RawQuery != "":
		return nil, "url is not one"
	case at.Scheme != "https" && (at.Scheme != "http" || !loopback(at.Hostname())):
		return nil, "url is not https: the token and the user data would be read on the way"
	}
	return at, ""
}

// host returns the host that the document describes. If the document has a fault, the result wrong describes the
// fault and does not quote the document.
func (a access) host() (h *host, wrong string) {
	at, wrong := a.address()
	if wrong != "" {
		return nil, wrong
	}
	if a.Token == "" || a.UserData == "" || !fleet.ValidProviderID(a.HostGroup) {
		return nil, "token, userData and hostGroup, a DNS-1123 label, are needed"
	}
	userData, err := template.New("").Option("missingkey=error").
		Funcs(template.FuncMap{"join": strings.Join}).Parse(a.UserData)
	if err != nil {
		return nil, "userData is no Go template"
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CAData != "" {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM([]byte(a.CAData)) {
			return nil, "caData is no PEM certificate"
		}
	}
	sum := sha256.Sum256([]byte(a.URL + "\n" + a.CAData))
	return &host{access: a, at: at, userData: userData, pin: hex.EncodeToString(sum[:]), web: &http.Client{
		Timeout: requestTimeout,
		// The client does not decompress answers, so that a few bytes on the wire cannot become many in memory.
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, DisableCompression: true,
			IdleConnTimeout: requestTimeout},
		// The client does not follow redirects, so that a host cannot make it send the user data elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, ""
}

func loopback(name string) bool { return name == "localhost" || net.ParseIP(name).IsLoopback() }
