"""Shapes of secrets that public scanners know, and a sample of each that is made when a test runs.

Only shapes that a scanner finds by themselves, without a word such as "adobe" before them. Sources:

- gitleaks: config/gitleaks.toml of gitleaks/gitleaks, commit b58d3f10, the rule's id
- detect-secrets: detect_secrets/plugins of Yelp/detect-secrets, commit 5e141933, the file
- trufflehog: pkg/detectors of trufflesecurity/trufflehog, commit 3ab759fe

A shape is literal text with runs of random characters: `<a36>` is 36 letters and digits. No scanner
finds it in this file, since `<` is part of no secret.
"""

import random
import re
import string
from typing import NamedTuple

_ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "d": string.digits,
    "h": "0123456789abcdef",
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "w": string.ascii_letters + string.digits + "_-",
}
"""The characters of a run, by the letter before its length."""
_RUN = re.compile(r"<([a-z])(\d+)>")
_SHORTEST = 8


class Sample(NamedTuple):
    """A made-up secret. None of its random `parts` may be shown."""

    text: str
    parts: tuple[str, ...]

    def is_in(self, shown: str) -> bool:
        """Whether a text shows eight characters of a random part."""
        return any(
            part[start : start + _SHORTEST] in shown
            for part in self.parts
            for start in range(max(1, len(part) - _SHORTEST + 1))
        )


class SecretShape(NamedTuple):
    """A shape of secrets: the scanner and rule that know it, and its text."""

    source: str
    shape: str

    def sample(self, seed: int = 0) -> Sample:
        """Returns a made-up secret of this shape; the same one for a seed."""
        chance = random.Random(f"{self.source} {seed}")
        parts: list[str] = []

        def fill(run: re.Match[str]) -> str:
            parts.append(_random_text(chance, run[1], int(run[2])))
            return parts[-1]

        text = _RUN.sub(fill, self.shape)
        return Sample(text, tuple(part for part in parts if len(part) >= _SHORTEST))


def _random_text(chance: random.Random, alphabet: str, length: int) -> str:
    """Returns random characters, without a sign at either end, which would end the secret."""
    letters = _ALPHABETS[alphabet]
    text = "".join(chance.choice(letters) for _ in range(length))
    ends = [char for char in letters if char.isalnum()]
    return f"{chance.choice(ends)}{text[1:-1]}{chance.choice(ends)}"


_TABLE = """
gitleaks 1password-secret-key                       A3-<u6>-<u6>-<u5>-<u5>-<u5>-<u5>
gitleaks 1password-service-account-token            ops_eyJ<a250>
gitleaks adobe-client-secret                        p8e-<l32>
gitleaks age-secret-key                             AGE-SECRET-KEY-1<u58>
gitleaks airtable-personnal-access-token            pat<a14>.<h64>
gitleaks alibaba-access-key-id                      LTAI<l20>
gitleaks anthropic-admin-api-key                    sk-ant-admin01-<w93>AA
gitleaks anthropic-api-key                          sk-ant-api03-<w93>AA
gitleaks artifactory-api-key                        AKCp<a69>
gitleaks artifactory-reference-token                cmVmd<a59>
gitleaks atlassian-api-token                        ATATT3<w186>
gitleaks authress-service-client-access-key         sc_<l20>.<l5>.acc_<l20>.<l60>
gitleaks aws-access-token                           AKIA<u16>
gitleaks aws-amazon-bedrock-api-key-long-lived      ABSK<b109>
gitleaks aws-amazon-bedrock-api-key-short-lived     bedrock-api-key-YmVkcm9jay5hbWF6<b60>
gitleaks azure-ad-client-secret                     <a3>8Q~<w31>
gitleaks clickhouse-cloud-api-secret-key            4b1d<a38>
gitleaks clojars-api-token                          CLOJARS_<l60>
gitleaks cloudflare-origin-ca-key                   v1.0-<h24>-<h146>
gitleaks databricks-api-token                       dapi<h32>
gitleaks defined-networking-api-token               dnkey-<l26>-<l52>
gitleaks digitalocean-access-token                  doo_v1_<h64>
gitleaks digitalocean-pat                           dop_v1_<h64>
gitleaks doppler-api-token                          dp.pt.<l43>
gitleaks duffel-api-token                           duffel_live_<l43>
gitleaks dynatrace-api-token                        dt0c01.<u24>.<u64>
gitleaks easypost-api-token                         EZAK<l54>
gitleaks facebook-page-access-token                 EAAM<l100>
gitleaks flutterwave-secret-key                     FLWSECK_TEST-<h32>-X
gitleaks flyio-access-token                         fo1_<w43>
gitleaks flyio-access-token                         fm2_<b100>
gitleaks frameio-api-token                          fio-u-<w64>
gitleaks gcp-api-key                                AIza<w35>
gitleaks github-app-token                           ghs_<a36>
gitleaks github-fine-grained-pat                    github_pat_<a22>_<a59>
gitleaks github-oauth                               gho_<a36>
gitleaks github-pat                                 ghp_<a36>
gitleaks gitlab-cicd-job-token                      glcbt-<a2>_<w20>
gitleaks gitlab-deploy-token                        gldt-<w20>
gitleaks gitlab-feature-flag-client-token           glffct-<w20>
gitleaks gitlab-feed-token                          glft-<w20>
gitleaks gitlab-incoming-mail-token                 glimt-<w25>
gitleaks gitlab-kubernetes-agent-token              glagent-<w50>
gitleaks gitlab-oauth-app-secret                    gloas-<w64>
gitleaks gitlab-pat                                 glpat-<w20>
gitleaks gitlab-pat-routable                        glpat-<w27>.<l2><l7>
gitleaks gitlab-ptt                                 glptt-<h40>
gitleaks gitlab-rrt                                 GR1348941<w20>
gitleaks gitlab-runner-authentication-token         glrt-<w20>
gitleaks gitlab-scim-token                          glsoat-<w20>
gitleaks gitlab-session-cookie                      _gitlab_session=<l32>
gitleaks grafana-api-key                            eyJrIjoi<a70>
gitleaks grafana-cloud-api-token                    glc_<b32>
gitleaks grafana-service-account-token              glsa_<a32>_<h8>
gitleaks harness-api-key                            pat.<w22>.<a24>.<a20>
gitleaks hashicorp-tf-api-token                     <a14>.atlasv1.<w64>
gitleaks heroku-api-key-v2                          HRKU-AA<w58>
gitleaks huggingface-access-token                   hf_<a34>
gitleaks huggingface-organization-api-token         api_org_<a34>
gitleaks jwt                                        eyJ<a20>.eyJ<a40>.<w43>
gitleaks linear-api-key                             lin_api_<l40>
gitleaks mailchimp-api-key                          <h32>-us12
gitleaks mapbox-api-token                           pk.<l60>.<l22>
gitleaks maxmind-license-key                        <a6>_<a29>_mmk
gitleaks microsoft-teams-webhook                    https://acme.webhook.office.com/webhookb2/<l32>
gitleaks new-relic-insert-key                       NRII-<l32>
gitleaks new-relic-user-api-key                     NRAK-<u27>
gitleaks notion-api-token                           ntn_<d11><a35>
gitleaks npm-access-token                           npm_<l36>
gitleaks octopus-deploy-api-key                     API-<u26>
gitleaks openai-api-key                             sk-proj-<w74>T3BlbkFJ<w74>
gitleaks openshift-user-token                       sha256~<w43>
gitleaks perplexity-api-key                         pplx-<a48>
gitleaks plaid-api-token                            access-production-<h8>-<h4>-<h4>-<h4>-<h12>
gitleaks planetscale-api-token                      pscale_tkn_<w43>
gitleaks planetscale-oauth-token                    pscale_oauth_<w43>
gitleaks planetscale-password                       pscale_pw_<w43>
gitleaks postman-api-token                          PMAK-<h24>-<h34>
gitleaks prefect-api-token                          pnu_<a36>
gitleaks pulumi-api-token                           pul-<h40>
gitleaks pypi-upload-token                          pypi-AgEIcHlwaS5vcmc<w60>
gitleaks readme-api-token                           rdme_<l70>
gitleaks rubygems-api-token                         rubygems_<h48>
gitleaks scalingo-api-token                         tk-us-<w48>
gitleaks sendgrid-api-token                         SG.<w22>.<w43>
gitleaks sendinblue-api-token                       xkeysib-<h64>-<l16>
gitleaks sentry-org-token                           sntrys_eyJpYXQiO<a60>_<a43>
gitleaks sentry-user-token                          sntryu_<h64>
gitleaks settlemint-personal-access-token           sm_pat_<a16>
gitleaks shippo-api-token                           shippo_live_<h40>
gitleaks shopify-access-token                       shpat_<h32>
gitleaks shopify-shared-secret                      shpss_<h32>
gitleaks slack-app-token                            xapp-1-<u11>-<d13>-<h64>
gitleaks slack-bot-token                            xoxb-<d12>-<d13>-<a24>
gitleaks slack-config-access-token                  xoxe.xoxp-1-<u163>
gitleaks slack-config-refresh-token                 xoxe-1-<u146>
gitleaks slack-webhook-url                          https://hooks.slack.com/services/T<u8>/B<u8>/<a24>
gitleaks sonar-api-token                            squ_<h40>
gitleaks sourcegraph-access-token                   sgp_<h16>_<h40>
gitleaks square-access-token                        EAAA<w60>
gitleaks stripe-access-token                        sk_live_<a24>
gitleaks stripe-access-token                        rk_prod_<a24>
gitleaks telegram-bot-api-token                     <d10>:AA<w33>
gitleaks twilio-api-key                             SK<h32>
gitleaks typeform-api-token                         tfp_<w44>_<a14>
gitleaks vault-batch-token                          hvb.<w138>
gitleaks vault-service-token                        hvs.<w90>
gitleaks yandex-access-token                        t1.<w40>.<w86>
gitleaks yandex-api-key                             AQVN<w36>
detect-secrets artifactory.py                       AKC<a30>
detect-secrets aws.py                               <a40>
detect-secrets azure_storage_key.py                 AccountKey=<b86>==
detect-secrets basic_auth.py                        https://bob:<a12>@example.com/
detect-secrets discord.py                           M<w24>.<w6>.<w27>
detect-secrets openai.py                            sk-<a20>T3BlbkFJ<a20>
detect-secrets pypi_token.py                        pypi-AgENdGVzdC5weXBpLm9yZw<w70>
detect-secrets square_oauth.py                      sq0csp-<w43>
trufflehog adafruitio                               aio_<a28>
trufflehog apify                                    apify_api_<a36>
trufflehog atlassian                                ATCTT3xFfG<w120>=<a8>
trufflehog bitbucketdatacenter                      BBDC-<b44>
trufflehog buildkite                                bkua_<l40>
trufflehog circleci                                 CCIPAT_<a22>_<h40>
trufflehog cloudflareapitoken                       cfut_<a40><h8>
trufflehog cloudflareglobalapikey                   cfk_<a40><h8>
trufflehog contentfulpersonalaccesstoken            CFPAT-<w43>
trufflehog datadogtoken                             ddp_<a36>
trufflehog dockerhub                                dckr_pat_<w27>
trufflehog elevenlabs                               sk_<h48>
trufflehog figmapersonalaccesstoken                 figp_<w44>
trufflehog flowflu                                  flb_live_<a20>
trufflehog groq                                     gsk_<a52>
trufflehog hubspot                                  pat-na1-<h8>-<h4>-<h4>-<h4>-<h12>
trufflehog langsmith                                lsv2_pt_<h32>_<h10>
trufflehog launchdarkly                             sdk-<h8>-<h4>-4<h3>-<h4>-<h12>
trufflehog netlify                                  nfp_<a36>
trufflehog nightfall                                NF-<a32>
trufflehog nvapi                                    nvapi-<w64>
trufflehog openrouter                               sk-or-v1-<h64>
trufflehog pinecone                                 pcsk_<a6>_<a63>
trufflehog posthog                                  phx_<a43>
trufflehog ramp                                     ramp_sec_<a48>
trufflehog razorpay                                 rzp_live_<a14>
trufflehog replicate                                r8_<w37>
trufflehog robinhoodcrypto                          rh-api-<h8>-<h4>-<h4>-<h4>-<h12>
trufflehog rootly                                   rootly_<h64>
trufflehog saladcloudapikey                         salad_cloud_<a6>_<a60>
trufflehog shortcut                                 shltm_<w40>
trufflehog supabasetoken                            sbp_<l40>
trufflehog tailscale                                tskey-auth-<a12>-<a32>
trufflehog voiceflow                                VF.DM.<h24>.<a16>
trufflehog xai                                      xai-<a80>
trufflehog zohocrm                                  1000.<h32>.<h32>
trufflehog azuresastoken                            https://x.blob.core.windows.net/c?sv=2024&sig=<a43>
"""
SHAPES = tuple(
    SecretShape(source.strip(), shape)
    for source, _, shape in (line.rpartition(" ") for line in _TABLE.strip().splitlines())
)
