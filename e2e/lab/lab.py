#!/usr/bin/env python3
"""A Liqo lab of plain processes: one consumer cluster and N providers.

Real control planes (etcd, kube-apiserver, controller-manager, scheduler), real
Liqo components on each, and a small runner that stands in for the kubelet: it
starts a real virtual-kubelet process for every virtual-kubelet Deployment that
Liqo creates, and marks plain pods Running on plain nodes.

  lab.py up   [--providers N] [--bin DIR] [--root DIR] [--owner PID] [--slot N]
  lab.py down [--root DIR]

--bin is what build.sh made. Everything listens on loopback, on fixed ports, so
one lab can run at a time and slot (each slot shifts all ports by 200):
`flock /tmp/lab.lock` guards slot 0 by hand, package lab does so by itself. State lives under --root; <root>/pids lists the processes as
"pid name start-time". With --owner the lab goes down when that process ends.
"""
import argparse, base64, json, os, shutil, signal, subprocess, sys, tempfile, time
import yaml

A = argparse.ArgumentParser()
A.add_argument("verb", choices=["up", "down", "runner"])
A.add_argument("--providers", type=int, default=1)
A.add_argument("--bin", default=os.environ.get("LAB_BIN", "bin"))
A.add_argument("--liqo", default=os.environ.get("LAB_LIQO", ""), help="default: liqo in --bin")
A.add_argument("--chart", default=os.environ.get("LAB_CHART", ""), help="default: chart in --bin")
A.add_argument("--owner", type=int, default=0)
A.add_argument("--slot", type=int, default=int(os.environ.get("LAB_SLOT", "0")))
A.add_argument("--tag", default="v1.2.0")
A.add_argument("--root", default=os.environ.get("LAB_ROOT", os.path.join(tempfile.gettempdir(), "lab")))
O = A.parse_args()
O.bin = os.path.abspath(O.bin)
O.liqo, O.chart = os.path.abspath(O.liqo or O.bin + "/liqo"), os.path.abspath(O.chart or O.bin + "/chart")
R, S = O.root, 200 * O.slot

def sh(*a, **k):
    return subprocess.run(a, check=True, text=True, capture_output=True, **k).stdout

def log(*a):
    print(time.strftime("%H:%M:%S"), *a, flush=True)

def spawn(name, args, env=None):
    f = open(f"{R}/log/{name}.log", "ab")
    e = dict(os.environ, **(env or {}))
    p = subprocess.Popen(args, stdout=f, stderr=f, stdin=subprocess.DEVNULL, env=e, start_new_session=True)
    with open(f"{R}/pids", "a") as g:
        g.write(f"{p.pid} {name} {started(p.pid)}\n")
    return p

def started(pid):
    """The start time of a process in clock ticks, "" when there is none: with the pid it names a process for good."""
    try: return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[19]
    except OSError: return ""

def listed():
    try: return [l.split() for l in open(f"{R}/pids")]
    except FileNotFoundError: return []

def orphaned():
    """Whether the process that owns the lab has ended."""
    try: return O.owner and open(f"/proc/{O.owner}/stat").read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError: return True

def alive(entry):
    """Whether the process of a line of the pids file still runs; a zombie does not."""
    try: return entry[2] == started(entry[0]) and open(f"/proc/{entry[0]}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError): return False

def pki():
    d = f"{R}/pki"; os.makedirs(d, exist_ok=True)
    if os.path.exists(f"{d}/ca.crt"): return
    sh("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=lab-ca",
       "-keyout", f"{d}/ca.key", "-out", f"{d}/ca.crt")
    def cert(n, subj, san=None):
        sh("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", subj, "-keyout", f"{d}/{n}.key", "-out", f"{d}/{n}.csr")
        ext = f"{d}/{n}.ext"
        with open(ext, "w") as f:
            f.write("keyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth,clientAuth\n")
            if san: f.write("subjectAltName=" + san + "\n")
        sh("openssl", "x509", "-req", "-in", f"{d}/{n}.csr", "-CA", f"{d}/ca.crt", "-CAkey", f"{d}/ca.key", "-CAcreateserial",
           "-days", "30", "-extfile", ext, "-out", f"{d}/{n}.crt")
    cert("server", "/CN=lab-server", "IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc")
    cert("admin", "/O=system:masters/CN=admin")
    sh("openssl", "genrsa", "-out", f"{d}/sa.key", "2048")
    sh("openssl", "rsa", "-in", f"{d}/sa.key", "-pubout", "-out", f"{d}/sa.pub")

def b64(p): return base64.b64encode(open(p, "rb").read()).decode()

def kubeconfig(c):
    d = f"{R}/pki"
    k = {"apiVersion": "v1", "kind": "Config", "current-context": c["name"],
         "clusters": [{"name": c["name"], "cluster": {"server": c["url"], "certificate-authority-data": b64(f"{d}/ca.crt")}}],
         "users": [{"name": "admin", "user": {"client-certificate-data": b64(f"{d}/admin.crt"), "client-key-data": b64(f"{d}/admin.key")}}],
         "contexts": [{"name": c["name"], "context": {"cluster": c["name"], "user": "admin"}}]}
    open(c["kc"], "w").write(yaml.safe_dump(k))

def clusters():
    out = []
    for i in range(O.providers + 1):
        n = "consumer" if i == 0 else f"provider{i}"
        out.append({"name": n, "i": i, "port": S + 6441 + i, "url": f"https://127.0.0.1:{S+6441+i}", "kc": f"{R}/{n}.kubeconfig",
                    "svc": f"10.{90+i}.0.0/16"})
    return out

def kubectl(c, *a, inp=None):
    return subprocess.run([f"{O.bin}/kubectl", "--kubeconfig", c["kc"], *a], input=inp, text=True, capture_output=True)

def control_plane(c):
    i, n, d = c["i"], c["name"], f"{R}/pki"
    e1, e2 = f"http://127.0.0.1:{S+2390+10*i}", f"http://127.0.0.1:{S+2391+10*i}"
    spawn(f"{n}-etcd", [os.environ.get("LAB_ETCD", f"{O.bin}/etcd"), "--data-dir", f"{R}/{n}-etcd", "--listen-client-urls", e1, "--advertise-client-urls", e1,
          "--listen-peer-urls", e2, "--initial-advertise-peer-urls", e2, "--initial-cluster", f"default={e2}"])
    spawn(f"{n}-apiserver", [f"{O.bin}/kube-apiserver", f"--etcd-servers={e1}", "--bind-address=127.0.0.1",
          f"--secure-port={c['port']}", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
          f"--service-cluster-ip-range={c['svc']}", f"--client-ca-file={d}/ca.crt", f"--tls-cert-file={d}/server.crt",
          f"--tls-private-key-file={d}/server.key", f"--service-account-key-file={d}/sa.pub", f"--service-account-signing-key-file={d}/sa.key",
          "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
          "--disable-admission-plugins=ServiceAccount"])
    kubeconfig(c)
    for _ in range(120):
        if kubectl(c, "get", "--raw", "/readyz").returncode == 0: break
        time.sleep(1)
    else: sys.exit(f"{n}: apiserver not ready, see {R}/log/{n}-apiserver.log")
    spawn(f"{n}-kcm", [f"{O.bin}/kube-controller-manager", f"--kubeconfig={c['kc']}", "--bind-address=127.0.0.1", f"--secure-port={S+10300+10*i}",
          f"--cluster-signing-cert-file={d}/ca.crt", f"--cluster-signing-key-file={d}/ca.key", f"--root-ca-file={d}/ca.crt",
          f"--service-account-private-key-file={d}/sa.key", "--use-service-account-credentials=false", "--leader-elect=false",
          "--controllers=*,-node-ipam-controller,-cloud-node-lifecycle-controller", f"--authentication-kubeconfig={c['kc']}", f"--authorization-kubeconfig={c['kc']}"])
    spawn(f"{n}-scheduler", [f"{O.bin}/kube-scheduler", f"--kubeconfig={c['kc']}", "--bind-address=127.0.0.1", f"--secure-port={S+10301+10*i}",
          "--leader-elect=false", f"--authentication-kubeconfig={c['kc']}", f"--authorization-kubeconfig={c['kc']}"])
    log(n, "control plane up")

def node(c, name, cpu, mem, pods="110", labels=None):
    o = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
         "kubernetes.io/arch": "amd64", **(labels or {})}}, "spec": {}}
    kubectl(c, "apply", "-f", "-", inp=json.dumps(o))
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    st = {"status": {"capacity": {"cpu": cpu, "memory": mem, "pods": pods, "ephemeral-storage": "100Gi"}, "allocatable": {"cpu": cpu, "memory": mem, "pods": pods, "ephemeral-storage": "100Gi"},
          "conditions": [{"type": "Ready", "status": "True", "reason": "Lab", "message": "", "lastHeartbeatTime": now, "lastTransitionTime": now}]}}
    r = kubectl(c, "patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps(st))
    kubectl(c, "patch", "node", name, "--type=json", "-p", '[{"op":"replace","path":"/spec/taints","value":[]}]')
    lease(c, name)

def lease(c, name):
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    o = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": "kube-node-lease"},
         "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now}}
    kubectl(c, "apply", "-f", "-", inp=json.dumps(o))

def liqo(c):
    n, i = c["name"], c["i"]
    vals = {"tag": O.tag, "networking": {"enabled": False}, "offloading": {"disableNetworkCheck": True}, "storage": {"enabled": False},
            "proxy": {"enabled": False}, "telemetry": {"enabled": False}, "metricAgent": {"enable": False}, "metrics": {"enabled": False},
            "discovery": {"config": {"clusterID": n}}, "apiServer": {"address": c["url"]},
            "virtualKubelet": {"extra": {"args": ["--enable-apiserver-support=false", "--certificate-type=self-signed"]}}}
    open(f"{R}/{n}-values.yaml", "w").write(yaml.safe_dump(vals))
    out = sh(f"{O.bin}/helm", "template", "liqo", O.chart, "-n", "liqo", "--include-crds", "-f", f"{R}/{n}-values.yaml")
    docs = [d for d in yaml.safe_load_all(out) if d]
    deploy = {d["metadata"]["name"]: d for d in docs if d["kind"] == "Deployment"}
    keep = [d for d in docs if d["kind"] in ("CustomResourceDefinition",)]
    rest = [d for d in docs if d["kind"] in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount", "ConfigMap", "RuntimeClass")]
    vk = [d for d in docs if d["kind"] == "VkOptionsTemplate"]
    wh = [d for d in docs if d["kind"] in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")]
    kubectl(c, "create", "namespace", "liqo")
    def apply(ds, ns=True):
        for d in ds:
            if d["kind"] in ("Role", "RoleBinding", "ServiceAccount", "ConfigMap", "VkOptionsTemplate"):
                d["metadata"].setdefault("namespace", "liqo")
        r = kubectl(c, "apply", "--server-side", "-f", "-", inp="\n---\n".join(json.dumps(d) for d in ds))
        if r.returncode: log(n, "apply:", r.stderr[-800:])
    apply(keep); 
    kubectl(c, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    apply(rest); apply(vk)
    env = {"KUBECONFIG": c["kc"], "POD_NAMESPACE": "liqo", "POD_NAME": f"{n}-pod", "CLUSTER_ID": n, "DEPLOYMENT_NAME": "liqo-webhook",
           "TMPDIR": f"{R}/{n}-tmp", "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(c["port"])}
    certs = f"{R}/{n}-tmp/k8s-webhook-server/serving-certs"; os.makedirs(certs, exist_ok=True)
    shutil.copy(f"{R}/pki/server.crt", certs + "/tls.crt"); shutil.copy(f"{R}/pki/server.key", certs + "/tls.key")
    def args(name, drop=()):
        a = deploy[name]["spec"]["template"]["spec"]["containers"][0].get("args", [])
        a = [x.replace("$(CLUSTER_ID)", n).replace("$(POD_NAMESPACE)", "liqo") for x in a]
        return [x for x in a if not any(x.startswith(p) for p in drop)]
    base = S + 8100 + 20 * i
    wp = S + 9500 + i
    spawn(f"{n}-liqo-webhook", [f"{O.liqo}/webhook", *args("liqo-webhook", ("--secret-name", "--webhook-port", "--podcidr")), f"--webhook-port={wp}", f"--podcidr=10.{100+i}.0.0/16",
          f"--metrics-address=127.0.0.1:{base+4}", f"--health-probe-address=127.0.0.1:{base+5}"], env)
    for d in wh:
        for w in d["webhooks"]:
            s = w["clientConfig"].pop("service")
            w["clientConfig"] = {"url": f"https://127.0.0.1:{wp}{s['path']}", "caBundle": b64(f"{R}/pki/ca.crt")}
    time.sleep(3)
    apply(wh)
    spawn(f"{n}-liqo-cm", [f"{O.liqo}/liqo-controller-manager", *args("liqo-controller-manager", ("--webhook-port",)), f"--webhook-port={wp+50}",
          f"--metrics-address=127.0.0.1:{base}", f"--health-probe-address=127.0.0.1:{base+1}"], env)
    spawn(f"{n}-crd-replicator", [f"{O.liqo}/crd-replicator", *args("liqo-crd-replicator"), f"--metrics-address=127.0.0.1:{base+2}"], env)
    log(n, "liqo up")

def runner():
    """Stand-in kubelet: virtual-kubelet Deployments -> processes; plain pods on plain nodes -> Running; node leases renewed."""
    cs = clusters(); vks = {}; nextport = [S + 20250]
    tick = 0
    while True:
        if orphaned():
            log("runner: owner", O.owner, "is gone, going down")
            subprocess.Popen([sys.executable, os.path.abspath(__file__), "down", "--root", R], start_new_session=True)
            return
        try:
            if tick % 10 == 0:
                for c in cs: lease(c, "plain-0")
            c = cs[0]
            r = kubectl(c, "get", "deploy", "-A", "-l", "offloading.liqo.io/component=virtual-kubelet", "-o", "json")
            want = {}
            for d in json.loads(r.stdout)["items"] if r.returncode == 0 else []:
                if d["metadata"].get("deletionTimestamp") or d["spec"].get("replicas", 1) == 0: continue
                want[d["metadata"]["namespace"] + "/" + d["metadata"]["name"]] = d
            for k, d in want.items():
                p = vks.get(k)
                if p and p.poll() is None: continue
                ct = d["spec"]["template"]["spec"]["containers"][0]
                a = [x.replace("$(POD_IP)", "127.0.0.1") for x in ct.get("args", [])]
                nm = k.replace("/", "_"); nextport[0] += 1
                e = {"KUBECONFIG": c["kc"], "POD_IP": "127.0.0.1", "POD_NAME": nm, "POD_NAMESPACE": d["metadata"]["namespace"],
                     "VIRTUALNODE_NAME": d["metadata"]["name"].replace("vk-", "")}
                for x in ct.get("env", []):
                    if x.get("value"): e[x["name"]] = x["value"]
                vks[k] = spawn("vk-" + nm, [f"{O.liqo}/virtual-kubelet", *a, f"--listen-port={nextport[0]}", f"--home-kubeconfig={c['kc']}"], e)
                log("started virtual-kubelet for", k)
                st = {"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1}}
                kubectl(c, "patch", "deploy", "-n", d["metadata"]["namespace"], d["metadata"]["name"], "--subresource=status", "--type=merge", "-p", json.dumps(st))
            for k in [k for k in vks if k not in want]:
                p = vks.pop(k)
                if p.poll() is None: os.killpg(p.pid, signal.SIGTERM)
                log("stopped virtual-kubelet for", k)
            for c in cs:
                r = kubectl(c, "get", "pods", "-A", "-o", "json")
                if r.returncode: continue
                for p in json.loads(r.stdout)["items"]:
                    m, s = p["metadata"], p.get("status", {})
                    nn = p["spec"].get("nodeName", "")
                    if not nn.startswith("plain"): continue
                    if m.get("deletionTimestamp"):
                        kubectl(c, "delete", "pod", "-n", m["namespace"], m["name"], "--grace-period=0", "--force", "--wait=false"); continue
                    if s.get("phase") == "Running": continue
                    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                    st = {"status": {"phase": "Running", "podIP": "10.244.0.5", "podIPs": [{"ip": "10.244.0.5"}], "startTime": now, "conditions": [{"type": t, "status": "True", "lastTransitionTime": now} for t in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
                          "containerStatuses": [{"name": x["name"], "image": x["image"], "imageID": "", "ready": True, "restartCount": 0, "started": True, "state": {"running": {"startedAt": now}}} for x in p["spec"]["containers"]]}}
                    kubectl(c, "patch", "pod", "-n", m["namespace"], m["name"], "--subresource=status", "--type=merge", "-p", json.dumps(st))
        except Exception as e:  # keep going: the lab outlives a hiccup of one API server
            log("runner:", repr(e))
        tick += 1
        time.sleep(1)

def up():
    try: start()
    except BaseException:  # a broken pipe, when the owner reads what we say no longer
        if orphaned(): down()
        raise

def start():
    os.makedirs(f"{R}/log", exist_ok=True)
    pki()
    cs = clusters()
    for c in cs: control_plane(c)
    for c in cs:
        node(c, "plain-0", "1" if c["i"] == 0 else "32", "2Gi" if c["i"] == 0 else "64Gi")
        liqo(c)
    spawn("runner", [sys.executable, os.path.abspath(__file__), "runner", "--providers", str(O.providers), "--bin", O.bin, "--liqo", O.liqo, "--root", R, "--owner", str(O.owner), "--slot", str(O.slot)])
    log("lab up:", ", ".join(c["kc"] for c in cs))

def down():
    """Ends what the pids file lists, the runner first so that it starts nothing new, and removes the root."""
    if not os.path.exists(f"{R}/pids"): return
    for s, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        for entry in sorted((l for l in listed() if alive(l)), key=lambda l: l[1] != "runner"):
            try: os.killpg(int(entry[0]), s)
            except (ProcessLookupError, PermissionError): pass
        deadline = time.time() + patience
        while time.time() < deadline and any(alive(l) for l in listed()): time.sleep(0.1)
    shutil.rmtree(R, ignore_errors=True)

{"up": up, "down": down, "runner": runner}[O.verb]()
