// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// why tests the kubectl plugin with the commands of docs/why.md: as the
// administrator, as users who lack a permission, and as one who has them all.
func (o *operator) why(t *testing.T) {
	page := readPage(t, filepath.Join("..", "..", "docs", "why.md"))
	page.folder = o.page.folder
	page.do(t, o.node, "plugin")
	// A pending pod, and a bound one.
	o.run(t, `kubectl create namespace shop
kubectl create --namespace shop serviceaccount asker
kubectl run --namespace shop web-0 --image none --overrides '{"spec": {"nodeSelector": {"nowhere": "true"}}}'
kubectl run --namespace shop web-1 --image none --overrides '{"spec": {"tolerations": [{"operator": "Exists"}]}}'
kubectl wait --namespace shop --for condition=PodScheduled --timeout `+stepTimeout.String()+` pod web-1
`+until("kubectl scheduling why web-0 --namespace shop", "Unschedulable"))
	const reason = "node(s) didn't match Pod's node affinity/selector"
	expect(t, page.do(t, o.node, "ask"), "None of 101 nodes fits", reason, "Rejected:", "NodeAffinity", "Attempts:", "fake-", "NAMESPACE", "web-0")
	page.complete(t)
	expect(t, o.run(t, "kubectl scheduling why web-1 --namespace shop --output wide"), "It is bound to node ", "Scores of ", "(chosen)", "NodeResourcesFit", "Bind ")
	expect(t, o.refused(t, "kubectl scheduling what-if web-1 --namespace shop 2>&1"), "web-1 is bound to node", "kubectl scheduling --namespace shop why web-1")
	expect(t, o.refused(t, "kubectl scheduling why absent --namespace shop 2>&1"), "there is no pod shop/absent, or it has ended", "next:  kubectl --namespace shop get pod absent")
	expect(t, o.refused(t, "kubectl scheduling queue --as jane 2>&1"), "does not support impersonation")
	expect(t, o.refused(t, "kubectl scheduling queue --lease kube-system/absent 2>&1"), "there is no lease kube-system/absent")
	var record struct {
		Kind, Result string
		Leader       bool
	}
	if err := json.Unmarshal([]byte(o.run(t, "kubectl scheduling why web-0 --namespace shop --output json")), &record); err != nil || record.Kind != "Pod" || record.Result != "Unschedulable" || !record.Leader {
		t.Errorf("got %+v (%v)", record, err)
	}
	// The bundle has the simulator, too.
	o.run(t, "install -m 0755 kube-scheduler-simulate /usr/local/bin/\nkubectl scheduling snapshot --anonymize > snapshot.json")
	expect(t, o.run(t, "kubectl scheduling simulate check --snapshot snapshot.json"), "get their real node again", "Snapshot: 101 nodes, ")
	o.askAsOthers(t)
	o.browse(t)
	o.run(t, "kubectl delete namespace shop --wait=false\nkubectl delete --filename manifests/examples/records --filename connects.yaml")
}

// until returns a script that waits until a command prints some words.
func until(command, words string) string {
	return "until { " + command + " || true; } | grep -q '" + words + "'; do sleep 0.1; done"
}

// askAsOthers runs the plugin as users with client certificates, and as a service account.
func (o *operator) askAsOthers(t *testing.T) {
	o.run(t, `kubectl --namespace kube-system get configmap kubeadm-config --output jsonpath='{.data.ClusterConfiguration}' > cluster.yaml
kubeadm kubeconfig user --config cluster.yaml --client-name jane --org developers > jane.conf
kubeadm kubeconfig user --config cluster.yaml --client-name joe > joe.conf`)
	as := func(user string) string {
		return "kubectl scheduling why web-0 --namespace shop --kubeconfig " + user + ".conf 2>&1"
	}
	expect(t, o.refused(t, as("joe")), "you are not allowed to get leases.coordination.k8s.io/kube-scheduler in namespace kube-system",
		"next:  kubectl auth can-i get leases.coordination.k8s.io/kube-scheduler --namespace kube-system")
	// This user finds the leader, but cannot connect.
	o.run(t, `{ kubectl create role connects --namespace kube-system --verb get --resource leases,pods --dry-run=client --output yaml; echo ---
kubectl create rolebinding connects --namespace kube-system --role connects --user joe --dry-run=client --output yaml; } > connects.yaml
kubectl apply --filename connects.yaml`)
	o.run(t, until(as("joe"), "not allowed to create"))
	expect(t, o.refused(t, as("joe")), "you are not allowed to create pods/kube-scheduler-cp1/portforward in namespace kube-system",
		"next:  kubectl auth can-i create pods/kube-scheduler-cp1 --subresource portforward --namespace kube-system")
	// This user connects, but may not read.
	o.run(t, "kubectl apply --filename manifests/examples/records/reach-the-scheduler.yaml")
	o.run(t, until(as("jane"), "nonResourceURLs"))
	expect(t, o.refused(t, as("jane")), "you are not allowed to get the path /scheduling/pods/shop/web-0 of the scheduler", `User "jane" cannot get path`,
		"next:  kubectl auth can-i get /scheduling/pods/shop/web-0; the ClusterRole read-scheduling-records of manifests/examples/records/read-scheduling-records.yaml allows it")
	o.run(t, "kubectl apply --filename manifests/examples/records/read-scheduling-records.yaml")
	// The scheduler caches the refusal for ten seconds.
	o.run(t, until(as("jane"), "None of"))
	expect(t, o.run(t, as("jane")), "None of 101 nodes fits")
	// This user reads one namespace: the pod of another one is not named.
	o.run(t, `kubectl create rolebinding jane --namespace shop --clusterrole view --user jane
kubectl create clusterrolebinding jane --clusterrole ask-scheduling-what-if --user jane
kubectl run taken --image none --overrides '{"spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "taken", "image": "none", "ports": [{"containerPort": 8080, "hostPort": 8080}]}]}}'
kubectl wait --for condition=PodScheduled --timeout `+stepTimeout.String()+` pod taken
kubectl run wants --namespace shop --image none --overrides '{"spec": {"nodeSelector": {"nowhere": "true"}, "containers": [{"name": "wants", "image": "none", "ports": [{"containerPort": 8080, "hostPort": 8080}]}]}}'`)
	asks := "kubectl scheduling what-if wants --namespace shop"
	expect(t, o.run(t, until(asks, "Host port")+"\n"+asks), "No node has the label nowhere.", "Host port 8080 is in use, for example by pod default/taken on node ")
	asks += " --kubeconfig jane.conf"
	expect(t, o.run(t, until(asks, "Host port")+"\n"+asks), "Host port 8080 is in use, for example by a pod that you may not list.")
	o.run(t, "kubectl delete clusterrolebinding jane\nkubectl delete pod taken --wait=false")

	o.run(t, `kubectl create rolebinding asker --namespace kube-system --role reach-the-scheduler --serviceaccount shop:asker --dry-run=client --output yaml > asker.yaml
echo --- >> asker.yaml
kubectl create clusterrolebinding asker --clusterrole read-scheduling-records --serviceaccount shop:asker --dry-run=client --output yaml >> asker.yaml
kubectl apply --filename asker.yaml`)
	token, err := o.client.CoreV1().ServiceAccounts("shop").CreateToken(t.Context(), "asker", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	withToken := "KUBECONFIG=/dev/null kubectl scheduling why web-0 --namespace shop --certificate-authority /etc/kubernetes/pki/ca.crt" +
		" --server $(kubectl config view --minify --output jsonpath='{.clusters[0].cluster.server}') --token " + token.Status.Token + " 2>&1"
	o.run(t, until(withToken, "None of"))
	o.run(t, "kubectl delete --filename asker.yaml")
}

// browse reads the records through the page's proxy, as a browser with and without the printed URL.
func (o *operator) browse(t *testing.T) {
	output := o.run(t, `kubectl scheduling page > url 2> /dev/null &
page=$!
until [[ -s url ]]; do sleep 0.1; done
url=$(< url)
curl --silent --show-error --output /dev/null --write-out 'without %{http_code}\n' "${url%%\?*}"
curl --silent --show-error --output /dev/null --write-out 'elsewhere %{http_code}\n' --header 'Host: example.org' "$url"
curl --silent --show-error --output /dev/null --write-out 'with %{http_code}\n' --cookie-jar jar "$url"
curl --silent --show-error --fail --cookie jar "${url%%\?*}/shop/web-0?output=json"
kill $page
wait $page || echo "ended with $?"`)
	expect(t, output, "without 403", "elsewhere 403", "with 200", `"result":"Unschedulable"`)
	if strings.Contains(output, "ended with") {
		t.Errorf("Ctrl-C is no error of the page's:\n%s", output)
	}
}
