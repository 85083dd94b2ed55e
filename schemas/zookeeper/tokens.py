"""What `/delegation_token/tokens/<tokenId>` holds (`TokenInformation`, `DelegationTokenInfoZNode`): no secret.

A token's HMAC is made of its id and the brokers' `delegation.token.secret.key`; Kafka stores it nowhere.
"""

from collections.abc import Mapping

TOKEN_FIELDS: Mapping[str, type] = {
    "version": int,
    "owner": str,
    "tokenRequester": str,
    "renewers": list,
    "issueTimestamp": int,
    "maxTimestamp": int,
    "expiryTimestamp": int,
    "tokenId": str,
}
